package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/adm"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

// full is a command with what completion tells apart.
type full struct {
	cli.Help
	cli.Connection
	List fullList `cmd:"" default:"withargs" help:"List."`
	Show fullShow `cmd:"" help:"Show one."`
}

type fullList struct {
	IDs    []string `arg:"" optional:"" name:"id"`
	States []string `short:"t"`
	Name   []string `short:"n"`
	Nodes  []string `short:"w"`
	User   string   `short:"u"`
	Me     bool
	Secret string `hidden:""`
}

func (fullList) Run(context.Context, *cli.App) error { return nil }

type fullShow struct {
	ID    string `arg:"" name:"id"`
	Shell string `enum:"bash,zsh,fish" default:"bash"`
}

func (fullShow) Run(context.Context, *cli.App) error { return nil }

func completed(t *testing.T, b *clitest.Bench, words ...string) string {
	t.Helper()
	b.Out.Reset()
	if code := b.App.Run(cli.Program{Name: "full"}, &full{}, append([]string{"--complete"}, words...)); code != 0 {
		t.Errorf("exit %d", code)
	}
	var out []string
	for l := range strings.Lines(b.Out.String()) {
		word, _, _ := strings.Cut(l, "\t")
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func TestComplete(t *testing.T) {
	jobs := clitest.SampleJobs()
	jobs = append(jobs, api.JobDetail{Job: api.Job{Number: 20, Name: "$(reboot)", User: "a;b", State: job.Queued}})
	b := clitest.Start(t, &clitest.Fake{Jobs: jobs, Nodes: clitest.SampleNodes()})
	t.Setenv("GBATCH_CONTROLLER", b.Socket)
	tests := map[string]string{
		"":                     "list show 12 13 14 15 16 20",
		"s":                    "show",
		"show |":               "12 13 14 15 16 20",
		"show 1":               "12 13 14 15 16",
		"1":                    "12 13 14 15 16",
		"12 1":                 "12 13 14 15 16",
		"--m":                  "--me",
		"--s":                  "--states",
		"show --s":             "--shell",
		"show --shell |":       "bash zsh fish",
		"show --shell=z":       "--shell=zsh",
		"--states QUEUED,FIN":  "QUEUED,FINISHED",
		"-t RUN":               "RUNNING",
		"--states = RUN":       "RUNNING",
		"-n |":                 "train a-job-with-quite-a-long-name-for-a-narrow-terminal kept job-a280f7",
		"-w gpu":               "gpu9 gpu3 gpu2 gpu1",
		"--user |":             "ann bob eve",
		"--controller /none |": "list show",
		"-- --m":               "",
	}
	for words, want := range tests {
		list := strings.Fields(strings.TrimSuffix(words, "|"))
		if words == "" || strings.HasSuffix(words, "|") {
			list = append(list, "")
		}
		if got := completed(t, b, list...); got != want {
			t.Errorf("%q: got %q, want %q", words, got, want)
		}
	}
	b.App.In = nil
	t.Setenv("GBATCH_CONTROLLER", "/none")
	if got := completed(t, b, "show", ""); got != "" || b.Err.Len() > 0 {
		t.Errorf("without a controller: %q, stderr %q", got, b.Err.String())
	}
}

// The script for bash asks the command that is typed, and takes its words.
func TestCompletionInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is missing: the completion of bash is not tested")
	}
	dir := t.TempDir()
	fake := "#!/bin/sh\nshift\nfor w; do echo \"<$w>\t about it\"; done\n"
	if err := os.WriteFile(filepath.Join(dir, "gqueue"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	app := &cli.App{Out: &script}
	if err := (&adm.Completion{Shell: "bash"}).Run(app); err != nil {
		t.Fatal(err)
	}
	script.WriteString("COMP_WORDS=(gqueue show '' -t)\nCOMP_CWORD=2\n_gbatch\nprintf '%s.' \"${COMPREPLY[@]}\"\ncomplete -p gadm\n")
	cmd := exec.Command(bash, "--norc", "-c", script.String())
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if want := "<show>.<>.complete -o default -F _gbatch gadm\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
	for _, shell := range []string{"zsh", "fish"} {
		script.Reset()
		if err := (&adm.Completion{Shell: shell}).Run(app); err != nil || !strings.Contains(script.String(), "gsubmit gqueue") || strings.Contains(script.String(), "%!") || strings.Contains(script.String(), "%s") {
			t.Errorf("%s: %v\n%s", shell, err, script.String())
		}
	}
	if err := (&adm.Completion{Shell: "tcsh"}).Run(app); exit.Code(err) != exit.Usage {
		t.Errorf("tcsh: %v", err)
	}
}

// A man page has what --help has, and formats without a warning.
func TestMan(t *testing.T) {
	b := clitest.Start(t, nil)
	p := cli.Program{Name: "full", About: "Do it. 'All' of it.", Examples: []string{`full -t 'a\nb'  # .this`, "full", ".full"}}
	if code := b.App.Run(p, &full{}, []string{"--man"}); code != 0 {
		t.Fatalf("exit %d: %s", code, b.Err.String())
	}
	page := b.Out.String()
	for _, want := range []string{".TH FULL 1", `full \- do it`, ".B full show", `\fB\-t, \-\-states=STATES,...\fR`, `\&.full`, `'a\enb'`, "0 done, 1 failed"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if strings.Contains(page, "secret") {
		t.Error("it tells of a hidden flag")
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is missing: the format of man pages is not tested")
	}
	cmd := exec.Command(groff, "-man", "-Tascii", "-ww")
	cmd.Stdin = strings.NewReader(page)
	var text, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &warnings
	if err := cmd.Run(); err != nil || warnings.Len() > 0 {
		t.Errorf("groff: %v: %s", err, warnings.String())
	}
}
