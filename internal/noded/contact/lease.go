package contact

import (
	"sync"
	"time"

	leases "gbatch/oci/lease"
)

// lease knows when the controller last heard from the node, and so for how
// long the node may go on alone. Time is counted by the clock that runs from
// boot and through sleep: steps of the wall clock do not touch a lease. It is
// kept in a file, so that a daemon that was away finds its lease run out: one
// where no job's disk is, as ranks whose lease cannot be renewed are ended.
type lease struct {
	path  string
	boot  string
	now   func() time.Duration // since boot
	files Files

	mu    sync.Mutex
	last  time.Duration // when the last answered request was sent
	term  time.Duration // in force
	saved time.Duration // last, as the file has it
	ever  bool          // a request was answered since the start
}

// contactFile is the file's form.
type contactFile struct {
	Boot         string `json:"boot"`
	LastMS       int64  `json:"lastMs"` // since boot
	LeaseMS      int64  `json:"leaseMs"`
	leases.Lease        // for the shims: the same with what the daemon needs to end its ranks itself
}

// saveEvery bounds how often the file is written; the lease is that much
// shorter after a restart of the daemon.
const saveEvery = time.Second

func openLease(path, boot string, term time.Duration, m Machine) *lease {
	l := &lease{path: path, boot: boot, now: m.Steady, files: m.Files, term: term}
	l.last = l.now()
	var f contactFile
	b, err := l.files.Read(l.path)
	if err != nil { // there is none yet
		return l
	}
	switch err := leases.Decode(b, &f); {
	case err != nil: // how long the daemon was away is not known: what runs may have been given to another node
		l.last -= l.term
	case f.Boot == boot: // one of an earlier boot is void: nothing that it covered runs
		l.last = time.Duration(f.LastMS) * time.Millisecond
		if f.LeaseMS > 0 {
			l.term = time.Duration(f.LeaseMS) * time.Millisecond
		}
	}
	return l
}

// answered notes that a request sent at sent has been answered with a lease.
func (l *lease) answered(sent, term time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ever = true
	l.last = max(l.last, sent)
	changed := term > 0 && term != l.term // shims must know of a shorter one now
	if term > 0 {
		l.term = term
	}
	if l.last-l.saved < saveEvery && l.saved > 0 && !changed {
		return nil
	}
	b, err := leases.Encode(contactFile{
		Boot: l.boot, LastMS: l.last.Milliseconds(), LeaseMS: l.term.Milliseconds(),
		Lease: leases.Lease{UntilMS: (l.last + l.term + graceOf(l.term)).Milliseconds(), GuardMS: (l.last + l.term + graceOf(l.term)*3/2).Milliseconds()},
	})
	if err == nil {
		err = l.files.Write(l.path, b)
	}
	if err != nil {
		return err
	}
	l.saved = l.last
	return nil
}

// left is how long ranks may still go on, and how long nothing was heard.
func (l *lease) left() (left, silent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	silent = l.now() - l.last
	return l.term - silent, silent
}

// grace is graceOf the lease in force.
func (l *lease) grace() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return graceOf(l.term)
}

// wait is how long to leave a poll open: well below the lease, which counts
// from when a request was sent.
func (l *lease) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(longPoll, l.term/3)
}

// graceOf is how long ranks may take to end when the lease has run out. It is
// well below what the controller waits beyond the lease, a quarter of it, before
// it gives the task away. If the daemon is dead by then, the shims see to it.
func graceOf(term time.Duration) time.Duration { return min(5*time.Second, term/8) }

// longPoll is how long the controller holds an open poll when nothing is new.
const longPoll = 25 * time.Second
