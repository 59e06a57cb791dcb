package lab

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"gbatch/internal/cli"
	"gbatch/internal/cli/acct"
	"gbatch/internal/cli/adm"
	"gbatch/internal/cli/cancel"
	"gbatch/internal/cli/info"
	"gbatch/internal/cli/queue"
	"gbatch/internal/cli/submit"
	"gbatch/internal/client"
)

// The commands as cmd/ puts them together, as far as the lab types them.
type (
	gsubmit struct {
		cli.Help
		cli.Connection
		cli.JSONFlag
		cli.IDsFlag
		cli.ISOFlag
		submit.Submit
	}
	gqueue struct {
		cli.LongHelp
		cli.Connection
		cli.JSONFlag
		cli.IDsFlag
		cli.ISOFlag
		List    queue.List    `cmd:"" default:"withargs"`
		Show    queue.Show    `cmd:""`
		Explain queue.Explain `cmd:""`
		Update  queue.Update  `cmd:""`
	}
	gcancel struct {
		cli.Help
		cli.Connection
		cli.JSONFlag
		cli.IDsFlag
		cancel.Cancel
	}
	ginfo struct {
		cli.LongHelp
		cli.Connection
		cli.JSONFlag
		info.Info
	}
	gacct struct {
		cli.LongHelp
		cli.Connection
		cli.JSONFlag
		cli.IDsFlag
		cli.ISOFlag
		List   acct.List   `cmd:"" default:"withargs"`
		Usage  acct.Usage  `cmd:""`
		Shares acct.Shares `cmd:""`
	}
	gadm struct {
		cli.Help
		cli.Connection
		cli.JSONFlag
		Drain        adm.Drain        `cmd:""`
		Resume       adm.Resume       `cmd:""`
		Reserve      adm.Reserve      `cmd:""`
		Unreserve    adm.Unreserve    `cmd:""`
		Reservations adm.Reservations `cmd:""`
		Audit        adm.Audit        `cmd:""`
		Project      struct {
			List adm.Projects   `cmd:""`
			Set  adm.SetProject `cmd:""`
		} `cmd:""`
		Policy struct {
			Check  adm.CheckPolicy  `cmd:""`
			Reload adm.ReloadPolicy `cmd:""`
		} `cmd:""`
		Token struct {
			Create adm.CreateToken `cmd:""`
			List   adm.Tokens      `cmd:""`
		} `cmd:""`
		NodeToken struct {
			Create adm.CreateNodeToken `cmd:""`
		} `cmd:""`
	}
)

// answer is what a command printed, and its exit code.
type answer struct {
	out, err string
	code     int
}

// command has somebody type a command: root, or a user with a token.
func (s *site) command(who string, words ...string) (a answer) {
	s.t.Helper()
	p := cli.Program{Name: words[0]}
	flags := []string{"--controller", "unix:///lab/s"}
	if who != "root" {
		flags = append(flags, "--token-file", s.tokenFile(who))
	}
	args := append(flags, words[1:]...)
	var out, err bytes.Buffer
	app := &cli.App{
		Out: &out, Err: &err, In: strings.NewReader(""), Wire: s.wire, Now: now, Sleep: client.Sleep, Environ: func() []string { return nil },
		Place: func() (string, string) { return "/home/" + who, "login1" },
	}
	switch words[0] {
	case "gsubmit":
		a.code = app.Run(p, &gsubmit{}, args)
	case "gqueue":
		a.code = app.Run(p, &gqueue{}, args)
	case "gcancel":
		a.code = app.Run(p, &gcancel{}, args)
	case "ginfo":
		a.code = app.Run(p, &ginfo{}, args)
	case "gacct":
		a.code = app.Run(p, &gacct{}, args)
	case "gadm":
		a.code = app.Run(p, &gadm{}, args)
	default:
		s.t.Fatal(errNoCommand)
	}
	a.out, a.err = out.String(), err.String()
	s.found.typed(words)
	return a
}

// must types a command that has to succeed.
func (s *site) must(who string, words ...string) string {
	s.t.Helper()
	a := s.command(who, words...)
	if a.code != 0 {
		s.found.wrong("%s: %s: exit code %d: %s%s", who, strings.Join(words, " "), a.code, a.out, a.err)
	}
	return a.out
}

// read types a command whose output is JSON.
func (s *site) read(into any, who string, words ...string) {
	s.t.Helper()
	text := s.must(who, words...)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.found.wrong("%s: %v in %q", strings.Join(words, " "), err, text[:min(len(text), 200)])
	}
}

func (s *site) tokenFile(user string) string { return filepath.Join(s.dir, user+".token") }

// scrape is the controller's metrics.
func (s *site) scrape() string {
	s.t.Helper()
	resp, err := (&http.Client{Transport: s.wire}).Get("http://gctld/metrics")
	if err != nil {
		s.found.wrong("metrics: %v", err)
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}
