package loop

import (
	"log/slog"
	"sync"
	"time"

	"gbatch/sched"
)

// steadyClock is what the controller counts by: patience with nodes, limits and
// bills. It runs by the machine's clock that nobody can set, from the wall time at
// the start. When somebody sets the wall clock it goes a little faster or slower
// until it agrees again, so that a step ends no job and is on no bill, whichever
// way it goes. It never goes back.
type steadyClock struct {
	read func() (wall time.Time, steady time.Duration) // steady: since some fixed moment
	log  *slog.Logger

	mu   sync.Mutex
	at   time.Time     // what it showed last
	last time.Duration // steady then
	off  bool          // it was said that it is off
}

// clockStep is the least difference that is worth a word.
const clockStep = 2 * time.Second

// slew is how much of the time that passes may go into agreeing again, as a divisor.
// The controller's patience exceeds the nodes' leases by more than that.
const slew = 20

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
	return &steadyClock{read: read, log: log, at: wall, last: steady}
}

func (c *steadyClock) now() sched.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, steady := c.read()
	passed := steady - c.last
	c.last, c.at = steady, c.at.Add(passed)
	ahead := wall.Sub(c.at) // of the wall clock
	switch far := ahead.Abs() > clockStep; {
	case far && !c.off:
		c.log.Warn("the machine's clock was set: times go on from where they were and agree again slowly; nothing is ended or billed for it",
			"ahead", ahead.Round(time.Millisecond), "agrees_in", (ahead.Abs() * slew).Round(time.Second))
		c.off = true
	case !far && c.off:
		c.log.Info("times agree with the machine's clock again")
		c.off = false
	}
	c.at = c.at.Add(min(max(ahead, -passed/slew), passed/slew))
	return sched.Time(c.at.UnixMilli())
}
