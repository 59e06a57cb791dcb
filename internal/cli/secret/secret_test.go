package secret

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRead: where values come from, that the command line is none of it, and that
// no error quotes one.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key=@x")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	zero := filepath.Join(t.TempDir(), "zero")
	if err := os.WriteFile(zero, []byte("hunter2\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HF_TOKEN", "hunter3")
	t.Setenv("NOTHING", "")
	tests := map[string]struct {
		flags []string
		want  map[string]string
		err   string
	}{
		"none":        {nil, map[string]string{}, ""},
		"all":         {[]string{"A@-", "key.pem@" + file, "HF_TOKEN", "ASKED"}, map[string]string{"A": "x=@y,z", "key.pem": "hunter2\n", "HF_TOKEN": "hunter3", "ASKED": "answer"}, ""},
		"exposed":     {[]string{"A=hunter2"}, nil, "secret A: everybody on this machine can read a value on the command line; write A alone, which takes it from the environment or asks, A@FILE, or A@- for standard input"},
		"twice":       {[]string{"HF_TOKEN", "HF_TOKEN"}, nil, "secret HF_TOKEN is given twice"},
		"input twice": {[]string{"A@-", "B@-"}, nil, "secret B: standard input is needed for something else already"},
		"unset":       {[]string{"NOT_SET_HERE"}, nil, "secret NOT_SET_HERE: there is no variable of that name; export it, or write NOT_SET_HERE@FILE, or NOT_SET_HERE@- for standard input"},
		"empty":       {[]string{"NOTHING"}, nil, "secret NOTHING: its value must not be empty"},
		"no file":     {[]string{"A@/nowhere"}, nil, "secret A: open /nowhere: no such file or directory"},
		"no name":     {[]string{"=hunter2"}, nil, `--secret: the name is "": a secret's name has 1 to 48 letters, digits and _ . -, and starts with a letter or digit`},
		"zero byte":   {[]string{"A@" + zero}, nil, "secret A: its value must not contain a zero byte"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from := Source{Env: os.LookupEnv, In: strings.NewReader("x=@y,z")}
			if slices.Contains(tc.flags, "ASKED") {
				from.Ask = func(string) (string, error) { return "answer", nil }
			}
			got, err := Read(tc.flags, from)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.err, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}
