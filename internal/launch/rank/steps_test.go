package rank

import "testing"

// TestCanceledBeforeItRuns: a step that is canceled when its number is recorded and has not come back yet
// is told so when it runs, and only that one.
func TestCanceledBeforeItRuns(t *testing.T) {
	s := &steps{running: map[uint32]*claim{}, early: map[uint32]bool{}}
	begin := func(number uint32) *claim {
		c := &claim{cancel: make(chan struct{})}
		s.runs(c, number)
		return c
	}
	canceled := func(c *claim) bool {
		select {
		case <-c.cancel:
			return true
		default:
			return false
		}
	}
	s.cancel(1)
	zero, one, two := begin(0), begin(1), begin(2)
	s.cancel(2)
	s.cancel(2) // as it may be said again
	for i, want := range []bool{false, true, true} {
		if got := canceled([]*claim{zero, one, two}[i]); got != want {
			t.Errorf("step %d is canceled: %t", i, got)
		}
	}
}
