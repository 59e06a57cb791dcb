package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestHaltSignal: a job that makes room for another is sent what it asked for,
// and has the time that it asked for.
func TestHaltSignal(t *testing.T) {
	for name, tc := range map[string]struct {
		g    *job.Gbatch
		want state.Ending
	}{
		"GPULab's":       {nil, state.Ending{Signal: "USR1", Grace: 30 * sched.Second}},
		"other systems'": {&job.Gbatch{Source: "slurm"}, state.Ending{Signal: "TERM", Grace: 30 * sched.Second}},
		"own":            {&job.Gbatch{HaltSignal: "USR1", HaltGrace: 600}, state.Ending{Signal: "USR1", Grace: 600 * sched.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node("n1", 2, gpus{}, "i1")
			spec := &job.Spec{Name: "a", Gbatch: tc.g}
			spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
			spec.Request.Scheduling.Restartable = true
			w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
			w.schedule()
			w.status("", node.RankStatus{ID: job.RankID{Job: 1}, Phase: node.PhaseRunning})
			w.c.begin(w.now).attempts.halt(w.c.jobs.get(1), job.Preempted, "halted to make room for job 2")
			tc.want.Reason, tc.want.Then, tc.want.Text, tc.want.Since = job.Preempted, job.Halted, "halted to make room for job 2", w.now
			if diff := cmp.Diff(&tc.want, w.c.jobs.get(1).Ending); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
