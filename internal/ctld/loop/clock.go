package loop

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"gbatch/oci/atomicfile"
	"gbatch/oci/boot"
	"gbatch/sched"
)

// Clock is what the controller counts by: patience with nodes, limits and
// bills. It runs by the machine's clock that nobody can set, from where the last
// start of the controller has left it. When somebody sets the wall clock it goes a little faster or slower
// until it agrees again, so that a step ends no job and is on no bill, whichever
// way it goes. It never goes back.
type Clock struct {
	read Readings
	log  *slog.Logger
	path string // of what is kept; "": nothing
	boot string

	mu   sync.Mutex
	at   time.Time     // what it showed last
	last time.Duration // steady then
	off  bool          // it was said that it is off

	kept   time.Duration // by how much it was ahead of the clock from boot
	keptAt time.Time
}

// clockStep is the least difference that is worth a word.
const clockStep = 2 * time.Second

// slew is how much of the time that passes may go into agreeing again, as a divisor.
// The controller's patience exceeds the nodes' leases by more than that.
const slew = 20

// Readings are a machine's clocks: the one that people set, and the one that runs from
// boot and through sleep.
type Readings func() (wall time.Time, steady time.Duration)

func machineClock() (time.Time, time.Duration) {
	return time.Now().Round(0), boot.Elapsed()
}

func newClock(read Readings, log *slog.Logger) *Clock {
	wall, steady := read()
	return &Clock{read: read, log: log, at: wall, last: steady}
}

// clockFile is what a clock keeps, so that the next start of the controller goes on from there
// whatever the wall clock was set to meanwhile.
type clockFile struct {
	Boot    string `json:"boot"`    // of the machine
	AheadMS int64  `json:"aheadMs"` // of the clock that runs from boot
	LastMS  int64  `json:"lastMs"`  // what it showed, Unix milliseconds
}

// OpenClock goes on from what a clock kept in a file: by the clock from boot, where the machine
// runs since; else by the wall clock, and never before what was shown last.
func OpenClock(path string, log *slog.Logger) *Clock {
	id, _ := boot.ID() // "": as of another boot each time
	return OpenClockBy(path, id, machineClock, log)
}

// OpenClockBy is OpenClock by other clocks than this machine's, which are of a boot.
func OpenClockBy(path, boot string, read Readings, log *slog.Logger) *Clock {
	c := newClock(read, log)
	c.path, c.boot = path, boot
	var kept clockFile
	if err := atomicfile.ReadJSON(path, &kept); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			log.Error("what the controller's clock goes on from cannot be read: it goes on from the machine's; look at what jobs that ran were billed if that was set meanwhile, and at the disk", "error", err)
		}
		return c
	}
	if kept.Boot == boot && boot != "" {
		c.at = time.UnixMilli(c.last.Milliseconds() + kept.AheadMS)
	} else if last := time.UnixMilli(kept.LastMS); last.After(c.at) {
		c.at = last
	}
	return c
}

// GoOn has the clock show what another controller's would, which led before: from there on it
// agrees with this machine's as after a step. 0: that is not known.
func (c *Clock) GoOn(from sched.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from == 0 {
		return
	}
	_, c.last = c.read()
	c.at = time.UnixMilli(int64(from))
}

// keepEvery bounds how old what is kept may be, and keepOff by how much it may be wrong.
const (
	keepEvery = time.Minute
	keepOff   = 500 * time.Millisecond
)

// keep writes down what the next start goes on from, when that is due. It need not be
// synced: after a loss of power it is of another boot.
func (c *Clock) keep() {
	c.mu.Lock()
	ahead := time.Duration(c.at.UnixMilli())*time.Millisecond - c.last
	due := c.path != "" && (c.keptAt.IsZero() || c.at.Sub(c.keptAt) >= keepEvery || (ahead-c.kept).Abs() >= keepOff)
	if due {
		c.kept, c.keptAt = ahead, c.at
	}
	b, err := json.Marshal(clockFile{c.boot, ahead.Milliseconds(), c.at.UnixMilli()})
	c.mu.Unlock()
	if !due {
		return
	}
	if err == nil {
		err = atomicfile.Write(c.path, atomicfile.Sum(b))
	}
	if err != nil {
		c.log.Debug("what a restart would go on from is not kept", "file", c.path, "error", err)
	}
}

// Now is what the clock shows.
func (c *Clock) Now() sched.Time { return c.now() }

func (c *Clock) now() sched.Time {
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

// since is how long ago a reading of the steady clock was, by which the loop measures its own work.
func (c *Clock) since(steady time.Duration) time.Duration { return c.steady() - steady }

func (c *Clock) steady() time.Duration {
	_, steady := c.read()
	return steady
}
