package slurm

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestPBS: which lines for PBS are refused: those that Slurm would read.
func TestPBS(t *testing.T) {
	commands := strings.Repeat("true\n", maxBeforePBS-1)
	for name, c := range map[string]struct {
		script string
		lines  []int
		args   []string
		set    string
	}{
		"any":                 {script: "#PBS -q gpu\n#PBS\n##PBS -q x\n # PBS -q x\n #PBS -q x\n#PBS-q x\n", lines: []int{3, 8}},
		"behind commands":     {script: "true\n#PBS -N a\n", lines: []int{4}},
		"behind many":         {script: commands + "true\n#PBS -N a\n", lines: []int{maxBeforePBS + 3}},
		"behind too many":     {script: commands + "true\ntrue\n#PBS -N a\n"},
		"ignored by script":   {script: "#PBS -N a\n#SBATCH --ignore-pbs\n"},
		"ignored by line":     {script: "#PBS -N a\n", args: []string{"--ignore-pbs"}},
		"ignored by variable": {script: "#PBS -N a\n", set: "SBATCH_IGNORE_PBS"},
	} {
		o := surroundings
		o.Line = c.args
		o.Env = func(name string) (string, bool) { return "", name == c.set }
		_, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=b --mem=1G\n"+c.script), o)
		var lines []int
		if problems, ok := errors.AsType[job.Problems](err); ok {
			for _, p := range problems {
				lines = append(lines, p.Line)
			}
		}
		if diff := cmp.Diff(c.lines, lines); diff != "" {
			t.Errorf("%s (-want +got): %v\n%s", name, err, diff)
		}
	}
}
