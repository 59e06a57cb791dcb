package noded

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci"
	"gbatch/oci/atomicfile"
)

// contact knows when the controller last heard from the node, and so for how
// long the node may go on alone. Time is counted by the clock that runs from
// boot and through sleep: steps of the wall clock do not touch a lease. It is
// kept in a file, so that a daemon that was away finds its lease run out.
type contact struct {
	path string
	boot string
	now  func() time.Duration // since boot

	mu    sync.Mutex
	last  time.Duration // when the last answered request was sent
	lease time.Duration
	saved time.Duration // last, as the file has it
	ever  bool          // a request was answered since the start
}

// contactFile is the file's form.
type contactFile struct {
	Boot      string `json:"boot"`
	LastMS    int64  `json:"lastMs"` // since boot
	LeaseMS   int64  `json:"leaseMs"`
	oci.Lease        // for the shims: the same with what the daemon needs to end its ranks itself
}

// saveEvery bounds how often the file is written; the lease is that much
// shorter after a restart of the daemon.
const saveEvery = time.Second

func openContact(dir, boot string, lease time.Duration, now func() time.Duration) *contact {
	c := &contact{path: filepath.Join(dir, "contact"), boot: boot, now: now, lease: lease}
	c.last = c.now()
	var f contactFile
	b, err := os.ReadFile(c.path)
	// A file of an earlier boot is void: nothing that it covered runs.
	if err == nil && json.Unmarshal(b, &f) == nil && f.Boot == boot {
		c.last = time.Duration(f.LastMS) * time.Millisecond
		if f.LeaseMS > 0 {
			c.lease = time.Duration(f.LeaseMS) * time.Millisecond
		}
	}
	return c
}

// answered notes that a request sent at sent has been answered with a lease.
// saved says that the file was written, or could not be.
func (c *contact) answered(sent, lease time.Duration) (saved bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ever = true
	c.last = max(c.last, sent)
	if lease > 0 {
		c.lease = lease
	}
	if c.last-c.saved < saveEvery && c.saved > 0 {
		return false, nil
	}
	b, err := json.Marshal(contactFile{
		Boot: c.boot, LastMS: c.last.Milliseconds(), LeaseMS: c.lease.Milliseconds(),
		Lease: oci.Lease{UntilMS: (c.last + c.lease + leaseGrace(c.lease)).Milliseconds()},
	})
	if err == nil {
		err = atomicfile.Write(c.path, b)
	}
	if err != nil {
		return true, fmt.Errorf("note contact: %w", err)
	}
	c.saved = c.last
	return true, nil
}

// left is how long ranks may still go on, and how long nothing was heard.
func (c *contact) left() (left, silent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent = c.now() - c.last
	return c.lease - silent, silent
}

// grace is leaseGrace of the lease in force.
func (c *contact) grace() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return leaseGrace(c.lease)
}

// wait is how long to leave a poll open: well below the lease, which counts
// from when a request was sent.
func (c *contact) wait() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(longPoll, c.lease/3)
}

// longPoll is how long the controller holds an open poll when nothing is new.
const longPoll = 25 * time.Second

func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every kernel that has openat2 has this clock
	}
	return time.Duration(ts.Nano())
}
