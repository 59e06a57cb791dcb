package events

import (
	"testing"

	"gbatch/internal/ctld/loop"
	"gbatch/internal/state"
)

// TestBells: a change wakes those streams that it concerns; others go on after it without
// having looked at it, and nobody leaves out what they were woken for.
func TestBells(t *testing.T) {
	of := func(id uint64, user string) loop.Update {
		return loop.Update{ID: id, Job: &state.Job{Owner: &state.Owner{User: user}}}
	}
	var b bells
	ann, bob := &eventStream{user: "ann", pos: 1}, &eventStream{user: "bob", pos: 1}
	b.hang(ann)
	b.hang(bob)
	woken := func(e *eventStream) bool { return len(e.bell.rings) > 0 }

	b.ring([]loop.Update{of(2, "bob")}, 2, true)
	if woken(ann) || !woken(bob) {
		t.Errorf("a change of bob's: ann woken %v, bob %v", woken(ann), woken(bob))
	}
	b.ring([]loop.Update{of(3, "ann")}, 3, true)
	if got := b.hear(bob); got != 1 {
		t.Errorf("bob, who was woken for 2, looks from %d on", got)
	}
	if got := b.hear(ann); got != 2 {
		t.Errorf("ann, who was woken for 3, looks from %d on", got)
	}
	ann.pos, bob.pos = 3, 3
	b.ring(nil, 9000, false)
	if !woken(ann) || !woken(bob) || b.hear(ann) != 3 || b.hear(bob) != 3 {
		t.Error("changes were missed, and not all streams hear of it")
	}
	b.take(bob)
	b.ring([]loop.Update{of(9001, "bob")}, 9001, true)
	if woken(bob) {
		t.Error("a stream that has ended is woken")
	}
}
