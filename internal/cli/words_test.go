package cli_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli"
	"gbatch/internal/cli/cancel"
	"gbatch/internal/cli/clitest"
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
func alike[C any, P interface {
	*C
	Run(context.Context, *cli.App) error
}](t *testing.T, run func(*clitest.Bench, P, []string) int, args []string) {
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
	}
}
