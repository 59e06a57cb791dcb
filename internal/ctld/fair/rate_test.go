package fair

import (
	"fmt"
	"testing"
	"time"
)

// TestRates: a user's burst is let in, then as many as the rate; others and later
// times are not touched by it, and those who are long gone are forgotten.
func TestRates(t *testing.T) {
	var r Rates
	now := time.Unix(1_000_000, 0)
	take := func(user string, n int) (got int) {
		for range n {
			if r.Take(now, user, 100, 1) == 0 {
				got++
			}
		}
		return got
	}
	for _, step := range []struct {
		pass time.Duration
		user string
		want int
	}{{0, "ann", 1000}, {0, "ann", 0}, {0, "bob", 1000}, {time.Second, "ann", 100}, {time.Minute, "ann", 1000}} {
		now = now.Add(step.pass)
		if got := take(step.user, 3000); got != step.want {
			t.Errorf("after %v %s was let in %d times, want %d", step.pass, step.user, got, step.want)
		}
	}
	if wait := r.Take(now, "ann", 100, 10); wait != 100*time.Millisecond {
		t.Errorf("ten of them in %v", wait)
	}
	if wait := r.Take(now, "ann", 0, 10); wait != 0 {
		t.Errorf("without a bound in %v", wait)
	}
	for i := range 100_000 {
		now = now.Add(time.Second)
		r.Take(now, fmt.Sprint(i), 100, 1)
	}
	if len(r.due) > 2000 {
		t.Errorf("%d users are remembered", len(r.due))
	}
}

// TestClockSetBack: who has spent all waits for it to come back, and not until the time
// that it was before the clock was set.
func TestClockSetBack(t *testing.T) {
	var r Rates
	now := time.Unix(1_000_000, 0)
	if wait := r.Spend(now, "ann", time.Minute, time.Minute); wait != 0 {
		t.Fatalf("the first waits for %v", wait)
	}
	now = now.Add(-3 * time.Hour)
	if wait := r.Spend(now, "ann", time.Second, time.Minute); wait != time.Second {
		t.Errorf("after the clock was set back: a wait of %v, want a second", wait)
	}
	if wait := r.Spend(now.Add(time.Second), "ann", time.Second, time.Minute); wait != 0 {
		t.Errorf("a second later: a wait of %v", wait)
	}
}
