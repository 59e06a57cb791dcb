package cli_test

import (
	"reflect"
	"testing"

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

// TestWordsAlone: what a command is given without a flag is to it what it is beside a
// flag that says the default, though no model of its flags is made for it.
func TestWordsAlone(t *testing.T) {
	for name, words := range map[string][]string{
		"one": {"none.json"}, "two": {"none.json", "12"}, "words of a flag": {"json", "a=b", "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GBATCH_CONTROLLER", "/none")
			run := func(args []string) (submits, cancels, string) {
				b := clitest.Start(t, nil)
				var s submits
				var c cancels
				codes := []int{b.App.Run(cli.Program{Name: "gsubmit"}, &s, args), b.App.Run(cli.Program{Name: "gcancel"}, &c, args)}
				if codes[0] == 0 || codes[1] == 0 {
					t.Errorf("%q: there is no file, and no controller: exit %v", args, codes)
				}
				return s, c, b.Out.String() + b.Err.String()
			}
			s, c, said := run(words)
			s2, c2, said2 := run(append([]string{"--timeout", "30s"}, words...))
			all := cmp.Exporter(func(reflect.Type) bool { return true })
			if diff := cmp.Diff(s2, s, all) + cmp.Diff(c2, c, all) + cmp.Diff(said2, said); diff != "" {
				t.Errorf("with a flag and without (-with +without):\n%s", diff)
			}
		})
	}
}
