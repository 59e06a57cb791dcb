package loop

import (
	"log/slog"
	"testing"
	"time"

	"gbatch/sched"
)

func TestClockNeverGoesBack(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	var steady, set time.Duration
	c := newSteadyClock(func() (time.Time, time.Duration) { return start.Add(steady + set), steady }, slog.New(slog.DiscardHandler))
	for _, step := range []struct{ steady, set, want time.Duration }{
		{time.Second, 0, time.Second},
		{2 * time.Second, time.Hour, time.Hour + 2*time.Second},       // set forward: followed
		{3 * time.Second, -time.Hour, time.Hour + 3*time.Second},      // set back: goes on
		{4 * time.Second, -time.Hour, time.Hour + 4*time.Second},      // at its own pace
		{5 * time.Second, 2 * time.Hour, 2*time.Hour + 5*time.Second}, // forward again
	} {
		steady, set = step.steady, step.set
		if got := c.now(); got != sched.Time(start.Add(step.want).UnixMilli()) {
			t.Errorf("at %v, set by %v: clock is %v after its start, want %v", steady, set, time.Duration(got)*time.Millisecond-time.Duration(start.UnixMilli())*time.Millisecond, step.want)
		}
	}
}
