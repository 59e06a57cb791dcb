package slurm

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestWaitedCode: sbatch that waited ends with the program's code, and with 1
// where the program did not end by itself.
func TestWaitedCode(t *testing.T) {
	code := func(n int) *int { return &n }
	for name, tc := range map[string]struct {
		job  api.Job
		want int
	}{
		"finished":  {api.Job{State: job.Finished, ExitCode: code(0)}, 0},
		"code":      {api.Job{State: job.Failed, Reason: string(job.ExitCode), ExitCode: code(7)}, 7},
		"signal":    {api.Job{State: job.Failed, Reason: string(job.Signal), ExitCode: code(137)}, 1},
		"no memory": {api.Job{State: job.Failed, Reason: string(job.OOM), ExitCode: code(137)}, 1},
		"cancelled": {api.Job{State: job.Cancelled, ExitCode: code(143)}, 1},
		"never ran": {api.Job{State: job.Failed}, 1},
	} {
		if got := waitedCode(&tc.job); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
