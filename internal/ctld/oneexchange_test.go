package ctld

import (
	"context"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// TestOneExchange: the answer to the word of a job's end has the next job's order, and the
// node's open poll stays open. A word that is not answered with what the node shall have
// leaves that to the poll.
func TestOneExchange(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(hello(8), "")
	second := s.submit(hello(8), "")
	n.sync(nil)
	first := job.RankID{Job: 1, Attempt: 1}
	polled := make(chan *api.SyncResponse, 1)
	req := &api.SyncRequest{Instance: "i-n1", Boot: "b", InventoryHash: "h", Seen: n.seen, WaitMS: 20_000, Ranks: []node.RankStatus{n.held[first]}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends with its answer
		resp, err := s.NodeSync(ctx, "n1", req)
		if err != nil {
			t.Error(err)
		}
		polled <- resp
	}()
	waits := func() int {
		// A turn has ended when the next one answers.
		if err := s.server.loop.Ask(t.Context(), func(*control.Controller, sched.Time) {}); err != nil {
			t.Fatal(err)
		}
		return s.server.loop.Nodes.Waiting("n1")
	}
	for deadline := time.Now().Add(time.Minute); waits() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no poll is open")
		}
	}
	n.report(first, node.PhaseEnded, &node.Exit{StartedMS: 1, EndedMS: 2})
	next := job.RankID{Job: 2, Attempt: 1}
	if n.runs[next] == nil || n.runs[next].UUID != second.UUID {
		t.Errorf("the answer to the end of job 1 ordered %+v, and not job 2", n.runs)
	}
	if waits() != 1 {
		t.Error("the open poll was answered too")
	}
	// Another machine's word is refused: the turn that took it in wakes the poll.
	if _, err := s.NodeSync(t.Context(), "n1", &api.SyncRequest{Instance: "i-n1", Boot: "copied", InventoryHash: "h"}); err == nil {
		t.Error("a copy was answered")
	}
	if waits() != 0 {
		t.Error("a word that was refused left the open poll asleep")
	}
	if resp := <-polled; resp != nil && (!resp.Changed || resp.Version != n.seen) {
		t.Errorf("the poll was told version %d, and the answer before it %d", resp.Version, n.seen)
	}
}
