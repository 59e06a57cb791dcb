package cli_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli"
	"gbatch/internal/cli/cancel"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/queue"
	"gbatch/internal/cli/submit"
)

type submits struct {
	cli.Help
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag
	submit.Submit
}

type cancels struct {
	cli.Help
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cancel.Cancel
}

type queues struct {
	cli.LongHelp
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag

	List    queue.List    `cmd:"" default:"withargs"`
	Show    queue.Show    `cmd:"" aliases:"status"`
	Explain queue.Explain `cmd:""`
	Wait    queue.Wait    `cmd:""`
}

// switches are all arguments that turn something on in a command, by kong.
func switches(t *testing.T, cmd any) (all []string) {
	t.Helper()
	parser, err := kong.New(cmd, kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range parser.Model.Flags {
		if !f.IsBool() || f.Name == "help" || f.Name == "version" {
			continue
		}
		if all = append(all, "--"+f.Name); f.Short != 0 {
			all = append(all, "-"+string(f.Short))
		}
	}
	return all
}

// alike runs a command with some arguments, and beside a flag that says the default, for
// which a model of all flags is made; nothing may differ.
func alike[C any, P interface{ *C }](t *testing.T, run func(*clitest.Bench, P, []string) int, args []string) {
	t.Helper()
	of := func(args []string) (C, cli.Output, int, string) {
		b := clitest.Start(t, nil)
		var c C
		code := run(b, &c, slices.Clone(args)) // which taking letters apart writes to
		return c, b.App.Output, code, b.Out.String() + b.Err.String()
	}
	c, o, code, said := of(args)
	c2, o2, code2, said2 := of(append([]string{"--timeout", "30s"}, args...))
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	if diff := cmp.Diff(c2, c, all) + cmp.Diff(o2, o) + cmp.Diff(code2, code) + cmp.Diff(said2, said); diff != "" {
		t.Errorf("%q with a flag that has a value and without (-with +without):\n%s", args, diff)
	}
}

// TestWordsAlone: what a command is given with words and switches alone is to it what it
// is beside a flag with a value, though no model of its flags is made for it.
func TestWordsAlone(t *testing.T) {
	t.Setenv("GBATCH_CONTROLLER", "/none")
	submit := func(b *clitest.Bench, c *submits, args []string) int {
		return b.App.Run(cli.Program{Name: "gsubmit"}, c, args)
	}
	queue := func(b *clitest.Bench, c *queues, args []string) int {
		return b.App.Run(cli.Program{Name: "gqueue"}, c, args)
	}
	cancel := func(b *clitest.Bench, c *cancels, args []string) int {
		return b.App.Run(cli.Program{Name: "gcancel"}, c, args)
	}
	all := [][]string{
		{"none.json"}, {"none.json", "12"}, {"json", "a=b", "timeout"},
		{"none.json", "--hold", "--json"}, {"--json", "--yaml", "12"}, {"--hold", "--hold", "12"}, {"-HW", "none.json"},
		{"--hold=false", "none.json"}, {"--hold=true", "12"}, {"--", "--hold"}, {"--Hold", "12"}, {"-", "--hold"}, {"", "--hold"}, {"-y", "--me"},
		{"--dryrun", "12"}, {"--no-hold", "12"}, {"--dry-run", "--convert", "12"}, {"--hold", "true", "12"},
	}
	for _, s := range append(switches(t, &submits{}), switches(t, &cancels{})...) {
		all = append(all, []string{s, "none.json"}, []string{"none.json", s}, []string{s})
	}
	for _, args := range all {
		alike(t, submit, args)
		alike(t, cancel, args)
		alike(t, queue, args)
	}
	all = [][]string{
		{}, {"12"}, {"show"}, {"show", "12"}, {"status", "12", "x"}, {"show", "12", "--json"}, {"--json", "show", "12"}, {"explain", "12"}, {"explain", "--json"},
		{"12", "show"}, {"list"}, {"list", "12"}, {"list", "show"}, {"show", "list"}, {"show", "-a", "12"}, {"-a", "show"}, {"--me", "show", "12"},
	}
	for _, s := range switches(t, &queues{}) {
		if s == "--watch" {
			continue // ends by Ctrl-C alone
		}
		all = append(all, []string{s, "12"}, []string{"show", "12", s}, []string{s}, []string{"explain", s, "12"})
	}
	for _, args := range all {
		alike(t, queue, args)
	}
}
