package jobs_test

import (
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/job"
)

// A job that slept for four seconds is not shown with three.
func TestRan(t *testing.T) {
	ago := func(ms int) time.Time { return clitest.Now.Add(-time.Duration(ms) * time.Millisecond) }
	tests := map[string]struct {
		job  api.Job
		want time.Duration
	}{
		"over, heard of begin late": {api.Job{State: job.Finished, Started: ago(9_000), Ended: ago(5_008)}, 4 * time.Second},
		"over, heard of end late":   {api.Job{State: job.Finished, Started: ago(9_000), Ended: ago(4_900)}, 4 * time.Second},
		"running":                   {api.Job{State: job.Running, Started: ago(3_992)}, 3_992 * time.Millisecond},
		"requeued":                  {api.Job{State: job.Queued, Started: ago(9_000)}, 0},
		"never started":             {api.Job{State: job.Cancelled, Ended: ago(1_000)}, 0},
	}
	for name, tc := range tests {
		if got := jobs.Ran(&tc.job, clitest.Now); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
