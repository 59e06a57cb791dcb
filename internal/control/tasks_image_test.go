package control

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestArrayImage: the digest of the first task that began is that of all later ones,
// over a restart also. One that was pulled and never began settles nothing, and a
// task that has run goes on with its own.
func TestArrayImage(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 2, gpus{}, "i1")
	spec := &job.Spec{Name: "sweep", Gbatch: &job.Gbatch{Tasks: &job.Tasks{Indexes: "0-9"}}}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	spec.Request.Scheduling.Restartable = true
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	task := func(index int) *state.Job {
		t.Helper()
		j := w.c.jobs.get(w.c.arrays.Of(1).Child(index))
		if j == nil {
			t.Fatalf("task %d is no job", index)
		}
		return j
	}
	say := func(index int, phase node.Phase, image string, exit *node.Exit) {
		t.Helper()
		j, n := task(index), w.c.nodes.get("n1")
		w.apply(NodeSync{Name: n.Name, Instance: n.Instance, Hash: n.Hash, Ranks: []node.RankStatus{{ID: j.RankID(0), Phase: phase, Image: image, Exit: exit}}})
	}
	runs := func(index int, want string) {
		t.Helper()
		if j := task(index); j.State != job.Assigned || j.Attempt.Image != want {
			t.Errorf("task %d is %s with image %q, want it assigned with %q", index, j.State, j.Attempt.Image, want)
		}
	}
	ran := func() *node.Exit { return &node.Exit{StartedMS: int64(w.now), EndedMS: int64(w.now)} }
	w.schedule()
	runs(0, "")
	runs(1, "")

	// A broken push: it is pulled and cannot be begun.
	say(0, node.PhasePulling, "sha256:broken", nil)
	say(0, node.PhaseEnded, "", &node.Exit{Code: 125, Reason: job.BadSpec})
	if got := w.c.jobs.get(1).Tasks.Image; got != "" {
		t.Errorf("the array runs %s, which never began", got)
	}
	w.schedule()
	runs(2, "")

	say(1, node.PhasePulling, "sha256:one", nil)
	say(2, node.PhasePulling, "sha256:two", nil) // pushed meanwhile, and pulled beside the first
	say(1, node.PhaseRunning, "", nil)
	say(2, node.PhaseRunning, "", nil)
	if got := w.c.jobs.get(1).Tasks.Image; got != "sha256:one" {
		t.Errorf("the array runs %q, want that of its first task", got)
	}
	say(1, node.PhaseEnded, "", ran())
	say(2, node.PhaseEnded, "", &node.Exit{Code: 255, Reason: job.NodeFail, StartedMS: int64(w.now)})
	w.restart()
	w.wait("60s")
	w.schedule()
	runs(2, "sha256:two")
	runs(3, "sha256:one")

	// A job that is told of by its end alone has begun as well.
	say(3, node.PhaseEnded, "", ran())
	w.schedule()
	runs(4, "sha256:one")
}
