package fair

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
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

// TestClockIsSet: what was spent comes back as time goes by, wherever the clock is set to.
func TestClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour} {
		var r Rates
		now := time.Now()
		if wait := r.Spend(now, "ann", time.Minute, time.Minute); wait != 0 {
			t.Fatalf("the first waits for %v", wait)
		}
		now = set(now, by)
		if wait := r.Spend(now, "ann", time.Second, time.Minute); wait != time.Second {
			t.Errorf("set by %v: a wait of %v, want a second", by, wait)
		}
		if wait := r.Spend(now.Add(time.Second), "ann", time.Second, time.Minute); wait != 0 {
			t.Errorf("set by %v, a second later: a wait of %v", by, wait)
		}
	}
}

// set is what time.Now gives at that moment when the clock on the wall was set: its seconds
// are in the first word from bit 30 on, and the time that passed is in the second.
func set(now time.Time, by time.Duration) time.Time {
	at := now
	*(*uint64)(unsafe.Pointer(&at)) += uint64(int64(by/time.Second) << 30)
	if got := at.Round(0).Sub(now.Round(0)); got != by || at.Sub(now) != 0 {
		panic("time.Time is another one than this was written for")
	}
	return at
}
