package exec

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli"
)

func TestParseForward(t *testing.T) {
	type want struct {
		Listen string
		Port   uint16
		Err    string
	}
	const form = "; want [ADDRESS:]LOCALPORT:JOBPORT, as 8080:80"
	tests := map[string]want{
		"8080:80":             {"127.0.0.1:8080", 80, ""},
		"8888":                {"127.0.0.1:8888", 8888, ""},
		"0:80":                {"127.0.0.1:0", 80, ""},
		"0.0.0.0:8080:80":     {"0.0.0.0:8080", 80, ""},
		"*:8080:80":           {":8080", 80, ""},
		"[::1]:8080:80":       {"[::1]:8080", 80, ""},
		"[::1:8080:80":        {Err: "--forward [::1:8080:80: the address has no end" + form},
		"8080:0":              {Err: `--forward 8080:0: "0" is no port of a job` + form},
		"0":                   {Err: `--forward 0: "0" is no port of a job` + form},
		"x:80":                {Err: `--forward x:80: "x" is no port` + form},
		"8080:":               {Err: `--forward 8080:: "" is no port of a job` + form},
		"70000:80":            {Err: `--forward 70000:80: "70000" is no port` + form},
		"1:2:3:4":             {Err: `--forward 1:2:3:4: "2:3:4" is no port of a job` + form},
		"localhost:8080:http": {Err: `--forward localhost:8080:http: "http" is no port of a job` + form},
	}
	for text, w := range tests {
		t.Run(text, func(t *testing.T) {
			f, err := parseForward(text)
			got := want{Listen: f.listen, Port: f.port}
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(w, got); diff != "" {
				t.Errorf("forward (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecStart(t *testing.T) {
	t.Setenv("HERE", "a=b")
	t.Setenv("TERM", "vt100")
	at := cli.Terminal{In: true, Out: true}
	tests := map[string]struct {
		o        Exec
		term     cli.Terminal
		terminal bool
		env      []string
		err      string
	}{
		"shell":          {term: at, terminal: true, env: []string{"TERM=vt100"}},
		"shell_in_pipe":  {term: cli.Terminal{Out: true}},
		"shell_no_tty":   {o: Exec{Pipes: true}, term: at},
		"command":        {o: Exec{Args: []string{"ls"}}, term: at},
		"command_tty":    {o: Exec{Args: []string{"ls"}, Terminal: true, Env: []string{"TERM=x"}}, terminal: true, env: []string{"TERM=vt100", "TERM=x"}},
		"env":            {o: Exec{Args: []string{"ls"}, Env: []string{"A=", "HERE"}}, env: []string{"A=", "HERE=a=b"}},
		"env_no_name":    {o: Exec{Env: []string{"=x"}}, err: `--env "=x" has no name: want NAME=VALUE`},
		"env_not_here":   {o: Exec{Env: []string{"GONE"}}, err: "--env GONE has no value: want GONE=VALUE, or a variable that is set here"},
		"long":           {o: Exec{Args: []string{string(make([]byte, 1<<20))}}, err: "the command and its environment are longer than 512 KiB; send it as standard input, as gexec 12 -- sh < script"},
		"usage_is_ours":  {o: Exec{Env: []string{""}}, err: `--env "" has no name: want NAME=VALUE`},
		"arguments_stay": {o: Exec{Args: []string{"-x", "--", ""}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			start, err := tc.o.start(&cli.App{Term: tc.term, Environ: os.Environ})
			if err != nil || tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.env, start.Env); diff != "" || start.Terminal != tc.terminal {
				t.Errorf("terminal %v, environment (-want +got):\n%s", start.Terminal, diff)
			}
			if diff := cmp.Diff(tc.o.Args, start.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}
