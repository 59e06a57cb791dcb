package control

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestTasksLostTogether: of tasks that end at one moment, as with their node, more than are kept in
// memory, their array hears before they leave it.
func TestTasksLostTogether(t *testing.T) {
	w := newWorld(t)
	w.cfg.KeepCount = 2
	w.apply(Reconfigure{w.cfg})
	w.node("n1", 8, gpus{}, "i")
	spec := &job.Spec{Name: "t", Gbatch: &job.Gbatch{Tasks: &job.Tasks{Indexes: "0-5"}}}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	w.schedule()
	n := w.c.nodes.get("n1")
	said := NodeSync{Name: "n1", Instance: "i", Hash: n.Hash}
	for _, num := range n.Jobs {
		said.Ranks = append(said.Ranks, node.RankStatus{ID: w.c.jobs.get(num).RankID(0), Phase: node.PhaseRunning})
	}
	w.apply(said)
	w.now += 2 * w.cfg.NodeTimeout
	w.apply(Tick{})
	if j := w.c.jobs.get(1); j.State != job.Failed || j.Tasks.Counts[state.TaskFailed] != 6 {
		t.Errorf("the array is %s: %s, tasks %v", j.State, j.Text, j.Tasks.Counts)
	}
	w.apply(Tick{})
	if kept := len(w.c.jobs.ended); kept != 2 {
		t.Errorf("%d ended jobs are kept", kept)
	}
}
