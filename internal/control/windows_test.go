package control

import (
	"fmt"
	"testing"

	"gbatch/internal/state"
	"gbatch/sched"
)

// TestReservationsAreBounded: there are at most maxWindows, one of which can still
// be replaced, and one that is dropped makes room.
func TestReservationsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 4, gpus{}, "i1")
	reserve := func(i int) any {
		a, refusal, _ := Apply(w.c, w.now, Reserve{Window: sched.Window{Name: fmt.Sprint("w", i), Start: w.now + sched.Time(i)*sched.Minute, End: w.now + sched.Time(i+1)*sched.Minute, Nodes: []string{"n1"}}})
		if refusal != nil {
			return refusal
		}
		return a
	}
	for i := range maxWindows {
		if r, refused := reserve(i).(*state.Refusal); refused {
			t.Fatalf("reservation %d: %v", i+1, r)
		}
	}
	if r, refused := reserve(maxWindows).(*state.Refusal); !refused || r.Code != state.OverLimit {
		t.Errorf("one more: %v", r)
	}
	if r, refused := reserve(7).(*state.Refusal); refused {
		t.Errorf("one that is there: %v", r)
	}
	w.apply(Unreserve{Name: "w7"})
	if r, refused := reserve(maxWindows).(*state.Refusal); refused {
		t.Errorf("when one was dropped: %v", r)
	}
}
