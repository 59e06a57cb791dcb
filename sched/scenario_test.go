package sched_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Each file in testdata opens with a sentence on what it proves. Run with
// -rewrite to write what is decided now, and read it before it is committed.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scenarios in testdata: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			var w *scenario
			datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string { return step(&w, d) })
		})
	}
}

// step does one command in the world, which the policy, or the first other
// command, makes.
func step(w **scenario, d *datadriven.TestData) string {
	out, err := "", error(nil)
	switch {
	case d.Cmd == "policy":
		*w, err = newScenario(d.Input)
	case *w == nil:
		if *w, err = newScenario(""); err != nil {
			break
		}
		fallthrough
	default:
		args := map[string]string{}
		for _, a := range d.CmdArgs {
			args[a.Key] = strings.Join(a.Vals, ",")
		}
		out, err = (*w).do(d.Cmd, args, strings.Split(strings.TrimSpace(d.Input), "\n"))
	}
	if err != nil {
		out += "error: " + err.Error() + "\n"
	}
	return out
}
