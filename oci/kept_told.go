package oci

import (
	"time"

	"gbatch/oci/result"
	"gbatch/oci/wire"
)

// Of most guests a shim says one word: how the program ended, and that another may run.

// tellRunsAfter is less than what comes of that word takes.
const tellRunsAfter = 5 * time.Millisecond

// tellRuns notes that a guest's program runs. Most are over before it would be of use to tell that, so
// it is told a moment later.
func (k *kept) tellRuns(s *shim, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.pid = wire.PhaseRunning, pid
	k.later = time.AfterFunc(tellRunsAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.phase == wire.PhaseRunning {
			s.setPhaseLocked(wire.PhaseRunning, s.pid)
		}
	})
}

// over says that a guest's program has ended: a stop from here on stops nothing.
func (k *kept) over(s *shim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.pid = wire.PhaseExited, 0
	if k.later != nil {
		k.later.Stop()
	}
}

// tellEnd tells how a guest ended, nil if that could not be recorded, and whether another may run.
func (k *kept) tellEnd(s *shim, exit *result.Exit, free bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end, s.free = exit, free
	s.setPhaseLocked(wire.PhaseExited, 0)
}
