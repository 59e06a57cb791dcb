package control

import (
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestBeyondOwnLimit: a job that is beyond a limit of its user by itself is refused,
// with the limit; one that is taken and then overtaken by a lower limit is explained
// as never.
func TestBeyondOwnLimit(t *testing.T) {
	w := newWorld(t)
	submit := func(gpus float64, uuid byte) any {
		spec := &job.Spec{Name: "a"}
		spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1, GPUs: gpus}
		return w.apply(Submit{UUID: [16]byte{uuid}, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	}
	limit := func(gpus int64) {
		w.cfg.Policy.User.MilliGPU = gpus * sched.WholeGPU
		w.apply(Reconfigure{Config: w.cfg})
	}
	limit(4)
	if r, ok := submit(5, 1).(*state.Refusal); !ok || r.Code != state.Unsatisfiable || !strings.Contains(r.Message, "user ann may have 4 GPUs at once, and the job asks for 5") {
		t.Errorf("5 GPUs of 4 are answered %+v", r)
	}
	if got, ok := submit(4, 2).(Submitted); !ok {
		t.Fatalf("4 GPUs of 4 are answered %+v", got)
	}
	limit(3)
	e := w.c.Explain(w.now, 1)
	if !e.Estimate.Never || len(e.Estimate.Reasons) == 0 || e.Estimate.Reasons[0].Code != sched.CodeNever {
		t.Errorf("explained as %+v", e.Estimate)
	}
}
