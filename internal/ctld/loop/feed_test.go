package loop

import (
	"testing"

	"gbatch/internal/control/effects"
	"gbatch/internal/state"
)

// TestFeed: what is kept is bounded, and a reader that is behind it is told.
func TestFeed(t *testing.T) {
	f := newFeed(3)
	empty := &state.View{}
	node := func(name string) *state.View { return &state.View{Nodes: state.NodesOf(&state.Node{Name: name})} }
	zero := f.Position()
	for range feedSize/2 + 5 { // each: one comes, one goes
		f.publish(empty, node("a"), &effects.Set{})
		f.publish(node("a"), empty, &effects.Set{})
	}
	if len(f.kept) != feedSize || cap(f.kept) > 2*feedSize {
		t.Errorf("it keeps %d changes in room for %d", len(f.kept), cap(f.kept))
	}
	tests := map[string]struct {
		id  uint64
		n   int
		all bool
	}{
		"newest":        {f.last, 0, true},
		"one behind":    {f.last - 1, 1, true},
		"oldest":        {f.last - feedSize, feedSize, true},
		"too old":       {f.last - feedSize - 1, 0, false},
		"the first":     {zero, 0, false},
		"not there yet": {f.last + 1, 0, false},
		"before":        {zero - 1, 0, false},
	}
	for name, tc := range tests {
		out, last, all, _ := f.After(tc.id)
		if len(out) != tc.n || all != tc.all || last != f.last {
			t.Errorf("%s: %d changes, all %v, last %d", name, len(out), all, last)
		}
		for i, c := range out {
			if c.ID != tc.id+uint64(i)+1 {
				t.Errorf("%s: change %d has id %d", name, i, c.ID)
				break
			}
		}
	}
	_, _, _, ring := f.After(f.last)
	select {
	case <-ring:
		t.Error("it rings for nothing")
	default:
	}
	f.publish(empty, node("b"), &effects.Set{})
	<-ring
}
