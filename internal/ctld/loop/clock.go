package loop

import (
	"log/slog"
	"time"

	"gbatch/sched"
)

// steadyClock is the wall clock, but it never goes back: when somebody sets the
// machine's clock back, it goes on at its own pace from where it was until the
// next start, and says so.
type steadyClock struct {
	read func() (wall time.Time, steady time.Duration) // steady: since some fixed moment
	log  *slog.Logger

	base   time.Time // wall time of the moment that steady counts from; only grows
	logged bool      // the step back that is under way
}

// clockStep is the least step that is worth a word.
const clockStep = 2 * time.Second

// machineClock reads the machine's two clocks.
func machineClock() func() (time.Time, time.Duration) {
	start := time.Now()
	return func() (time.Time, time.Duration) {
		t := time.Now()
		return t.Round(0), t.Sub(start) // Round drops the monotonic reading, Sub uses it
	}
}

func newSteadyClock(read func() (time.Time, time.Duration), log *slog.Logger) *steadyClock {
	wall, steady := read()
	return &steadyClock{read: read, log: log, base: wall.Add(-steady)}
}

func (c *steadyClock) now() sched.Time {
	wall, steady := c.read()
	step := wall.Add(-steady).Sub(c.base)
	switch {
	case step > clockStep:
		c.log.Warn("the machine's clock was set forward: waits and limits count it", "by", step)
	case step < -clockStep && !c.logged:
		c.log.Warn("the machine's clock was set back: times go on from where they were until gctld starts again", "by", -step)
		c.logged = true
	}
	if step > 0 {
		c.base, c.logged = c.base.Add(step), false
	}
	return sched.Time(c.base.Add(steady).UnixMilli())
}
