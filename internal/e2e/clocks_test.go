package e2e

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock is a daemon's clock on the wall, which the drill sets: a file that says by how much it is
// off, for the programs that scripts/build-drill makes. A node's shims have theirs.
type clock struct {
	path string
	off  time.Duration
}

// newClock is that of a daemon which has not been started yet.
func newClock(t *testing.T, d *daemon, dir string) *clock {
	t.Helper()
	c := &clock{path: filepath.Join(dir, "drill.clock")}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.path, make([]byte, 8), 0o644); err != nil {
		t.Fatal(err)
	}
	d.clock = c
	return c
}

// set has it off by so much.
func (c *clock) set(t *testing.T, off time.Duration) {
	t.Helper()
	c.off = off
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(off)) // over the same bytes: a full disk has them
	if _, err := f.WriteAt(b[:], 0); err != nil {
		t.Error(err)
	}
}

// proves that the programs under test go by these clocks, or what the drill does to them would be nothing.
func (c *clock) proves(t *testing.T, d *daemon) {
	t.Helper()
	c.set(t, time.Minute)
	eventually(t, d.name+" notices that its clock was set: build its programs by scripts/build-drill", func() bool {
		return strings.Contains(tail(d.log, 1000), "the machine's clock was set")
	})
	c.set(t, 0)
}

// steps are what a clock is set by, in both directions: what a bad server of time does, a summer
// time that is none, a machine whose battery is empty.
var steps = []time.Duration{3 * time.Second, 20 * time.Second, 2 * time.Minute, time.Hour, 3 * time.Hour, 26 * time.Hour}

// step sets a clock and leaves it there, for what else is done meanwhile and after; or sets it right.
func (f *faults) step() func() {
	c := f.clocks[f.dice.IntN(len(f.clocks))]
	by := steps[f.dice.IntN(len(steps))]
	switch f.dice.IntN(5) {
	case 0, 1:
		c.set(f.s.t, c.off+by)
	case 2, 3:
		c.set(f.s.t, c.off-by)
	default:
		c.set(f.s.t, 0)
	}
	return func() {}
}
