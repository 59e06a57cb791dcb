package sched_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"gbatch/sched/schedtest"
)

// Each file in testdata opens with a sentence on what it proves. Run with
// -rewrite to write what is decided now, and read it before it is committed.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var w *schedtest.World
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "policy" || w == nil {
				text := ""
				if d.Cmd == "policy" {
					text = d.Input
				}
				var err error
				if w, err = schedtest.New(text); err != nil {
					return "error: " + err.Error() + "\n"
				}
				if d.Cmd == "policy" {
					return ""
				}
			}
			args := map[string]string{}
			for _, a := range d.CmdArgs {
				args[a.Key] = strings.Join(a.Vals, ",")
			}
			var lines []string
			for l := range strings.Lines(d.Input) {
				if l = strings.TrimSpace(l); l != "" {
					lines = append(lines, l)
				}
			}
			out, err := w.Do(d.Cmd, args, lines)
			if err != nil {
				out += "error: " + err.Error() + "\n"
			}
			return out
		})
	})
}
