package slurm

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestOthers: which lines for PBS and LSF are refused: those that Slurm would read.
func TestOthers(t *testing.T) {
	commands := strings.Repeat("true\n", maxBeforeOthers-1)
	for name, c := range map[string]struct {
		script string
		lines  []int
		args   []string
		set    string
	}{
		"any":                 {script: "#PBS -q gpu\n#PBS\n##PBS -q x\n # PBS -q x\n #PBS -q x\n#PBS-q x\n", lines: []int{3, 8}},
		"of LSF":              {script: "#BSUB -q gpu\n#BSUB\n##BSUB -q x\n #BSUB -q x\ntrue\n#BSUB -n 4\n", lines: []int{3, 8}},
		"of LSF, ignored":     {script: "#BSUB -n 4\n", args: []string{"--ignore-pbs"}},
		"behind commands":     {script: "true\n#PBS -N a\n", lines: []int{4}},
		"behind many":         {script: commands + "true\n#PBS -N a\n", lines: []int{maxBeforeOthers + 3}},
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

// TestInsteadOfBSUB: what to write in place of a line for LSF.
func TestInsteadOfBSUB(t *testing.T) {
	for rest, want := range map[string][]string{
		" -J name -n 4":                        {"--job-name", "--ntasks"},
		" -n4 -W10:00":                         {"--ntasks", "--time"},
		" -oo out.%J -eo err.%J":               {"--output", "--error"},
		` -R "span[ptile=4] rusage[mem=100]"`:  {"--ntasks-per-node", "--mem"},
		` -gpu "num=2:mode=exclusive_process"`: {"--gpus-per-node"},
		" -Zs":                                 nil,
		" - 4 x":                               nil,
		" -R":                                  nil,
	} {
		if diff := cmp.Diff(want, insteadOfBSUB(rest)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rest, diff)
		}
	}
}
