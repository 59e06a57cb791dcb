package oci

import (
	"time"

	"gbatch/oci/result"
	"gbatch/oci/wire"
)

// Of most guests a shim says one word: how the program ended, and that another may run.

// runsLonger is less than what comes of the word that a program runs takes, and than what a limit needs.
const runsLonger = 5 * time.Millisecond

// runs notes that a guest's program runs, until over is closed. Most are over before it would be of use to
// tell that, or to look at their lease and their limit, so that is for those which still run a moment later.
func (k *kept) runs(s *shim, pid int, over <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.pid = wire.PhaseRunning, pid
	k.later = time.AfterFunc(runsLonger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.phase == wire.PhaseRunning {
			s.setPhaseLocked(wire.PhaseRunning, s.pid)
			s.keep(over)
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
