package allocation

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestHasSteps: of another's job, which is not shown, nothing is said of what it is.
func TestHasSteps(t *testing.T) {
	for want, d := range map[string]*api.JobDetail{
		"": {Job: api.Job{ID: "12"}, Spec: &job.Spec{Gbatch: &job.Gbatch{Launch: &job.Launch{}}}},
		"job 12 is no batch script and no allocation: x":                      {Job: api.Job{ID: "12"}, Spec: &job.Spec{}},
		"job 12 is of another project: only who may see it can use its steps": {Job: api.Job{ID: "12", Private: true}},
	} {
		got := ""
		if err := hasSteps(d, ": x"); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
