package loop

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestClockSteps: setting the wall clock, either way and by however much, makes no
// time pass that did not; the clock agrees with it again after some time, and both
// are said once.
func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{3 * time.Hour, -3 * time.Hour, 5 * time.Minute, -time.Minute, 100 * time.Millisecond} {
		t.Run(step.String(), func(t *testing.T) {
			start := time.UnixMilli(1_000_000_000)
			var steady, set time.Duration
			var said bytes.Buffer
			c := newSteadyClock(func() (time.Time, time.Duration) { return start.Add(steady + set), steady }, slog.New(slog.NewTextHandler(&said, nil)))
			last, began := c.now(), c.now()
			set = step
			pass := func(for_ time.Duration) {
				for range 600 {
					steady += for_ / 600
					now := c.now()
					if now < last {
						t.Fatalf("it went back from %d to %d", last, now)
					}
					last = now
				}
			}
			pass(time.Hour)
			passed := time.Duration(last-began) * time.Millisecond
			if most := time.Hour / slew; (passed - time.Hour).Abs() > most+time.Second {
				t.Errorf("in an hour %s passed", passed)
			}
			pass(step.Abs() * slew)
			if want := start.Add(steady + set).UnixMilli(); (int64(last)-want) > 10 || want-int64(last) > 10 {
				t.Errorf("it is %d at last, want the wall clock's %d", last, want)
			}
			want := 2
			if step.Abs() < clockStep {
				want = 0
			}
			if got := strings.Count(said.String(), "\n"); got != want {
				t.Errorf("%d lines were logged, want %d:\n%s", got, want, said.String())
			}
		})
	}
}
