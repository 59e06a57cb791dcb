package allocation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	steps "gbatch/internal/launch/srun"
)

// TestParseCall sorts options by who is to have them: the job, the step, or both.
func TestParseCall(t *testing.T) {
	for line, want := range map[string]string{
		"-N2 -n 4 hostname -I":                   "job [-N2 -n 4] step [-N2 -n 4] run [hostname -I]",
		"--ntasks=4 -lu -K -- ./a -n 1":          "job [--ntasks=4] step [--ntasks=4 -l -u -K] run [./a -n 1]",
		"--pty --gres=gpu:1 bash":                "job [--gres=gpu:1] step [--pty --gres=gpu:1] run [bash] pty",
		"--image x:1 --mem 2G -o out-%t true":    "job [--image x:1 --mem 2G] step [--mem 2G -o out-%t] run [true]",
		"--jobid 12 --overlap true":              "job [] step [--overlap] run [true] in 12",
		"--export=ALL,A -W 3 --mpi=pmi2 true -x": "job [--export=ALL,A] step [--export=ALL,A -W 3 --mpi=pmi2] run [true -x]",
		"-n1 true a:b : -n2 true":                steps.PartsRefused,
		"--moon true":                            "unrecognized option '--moon'",
		"-n":                                     "option '-n' requires an argument",
		"-n 4":                                   "no command given to execute",
	} {
		c, err := parseCall(strings.Fields(line))
		got := fmt.Sprint("job ", c.ofJob, " step ", c.ofStep, " run ", c.command)
		if c.pty {
			got += " pty"
		}
		if c.jobID != "" {
			got += " in " + c.jobID
		}
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("srun %s (-want +got):\n%s", line, diff)
		}
	}
}
