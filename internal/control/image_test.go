package control

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestOneImage: the digest that the first rank finds is that of the whole gang,
// and of every later attempt, whatever the tag names by then.
func TestOneImage(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 2, gpus{}, "i1")
	w.node("n2", 2, gpus{}, "i2")
	spec := &job.Spec{Name: "gang", Gbatch: &job.Gbatch{Nodes: 2}}
	spec.Request.Resources = job.Resources{CPUs: 2, CPUMemoryGB: 1}
	spec.Request.Scheduling.Restartable = true
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	w.schedule()
	waits := func(want bool) {
		t.Helper()
		if j := w.c.jobs.get(1); j.AwaitsImage(0) || j.AwaitsImage(1) != want {
			t.Errorf("the ranks await the image: %t, %t; want false, %t", j.AwaitsImage(0), j.AwaitsImage(1), want)
		}
	}
	say := func(rank int, phase node.Phase, image string, exit *node.Exit) {
		j := w.c.jobs.get(1)
		n := w.c.nodes.get(j.Attempt.Ranks[rank].Alloc.Node)
		w.apply(NodeSync{Name: n.Name, Instance: n.Instance, Hash: n.Hash, Ranks: []node.RankStatus{{ID: j.RankID(rank), Phase: phase, Image: image, Exit: exit}}})
	}
	waits(true)
	say(0, node.PhasePulling, "", nil)
	waits(true)
	before := w.c.nodes.get("n2").Version
	say(0, node.PhasePulling, "sha256:one", nil)
	waits(false)
	if w.c.nodes.get("n2").Version == before {
		t.Error("the other node is not told that its rank may start")
	}
	say(1, node.PhasePulling, "sha256:two", nil)
	if got := w.c.jobs.get(1).Attempt.Image; got != "sha256:one" {
		t.Errorf("the gang's image became %s", got)
	}
	lost := &node.Exit{Code: 255, Reason: job.NodeFail}
	say(0, node.PhaseEnded, "", lost)
	say(1, node.PhaseEnded, "", lost)
	w.restart()
	w.wait("60s")
	w.schedule()
	if j := w.c.jobs.get(1); j.State != job.Assigned || j.Tries != 2 || j.Attempt.Image != "sha256:one" {
		t.Fatalf("the next attempt: %s, try %d, image %q", j.State, j.Tries, j.Attempt.Image)
	}
	waits(false)
}

// A gang whose first rank never says what it pulled is not kept waiting once
// that rank is past its pull, nor when it is to end.
func TestGangWithoutDigest(t *testing.T) {
	for name, j := range map[string]*state.Job{
		"past its pull": {Attempt: &state.Attempt{Ranks: []state.Rank{{Phase: node.PhaseRunning}, {Phase: node.PhaseAssigned}}}},
		"ending":        {Ending: &state.Ending{}, Attempt: &state.Attempt{Ranks: []state.Rank{{Phase: node.PhaseAssigned}, {Phase: node.PhaseAssigned}}}},
	} {
		if j.AwaitsImage(1) {
			t.Errorf("%s: it waits", name)
		}
	}
}
