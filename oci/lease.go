package oci

import (
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/oci/lease"
)

// keep ends the container when its lease has run out or its time is over, until done
// is closed.
func (s *shim) keep(done <-chan struct{}) {
	if s.cfg.LeaseFile != "" {
		go lease.Keep(s.cfg.LeaseFile, done, func() error { // ends when the container has
			s.note(&s.leaseOver)
			return s.stop(unix.SIGKILL)
		})
	}
	if s.cfg.LimitFile != "" {
		go lease.KeepLimit(s.cfg.LimitFile, s.cfg.Limit, done, s.overLimit) // the same
	}
}

// overLimit ends a container whose time is over, unless somebody does so already: what
// handles a signal may end by a second one.
func (s *shim) overLimit(sig syscall.Signal) error {
	s.mu.Lock()
	stopped := s.stopped
	s.limitOver = s.limitOver || !stopped
	s.mu.Unlock()
	if stopped && sig != unix.SIGKILL {
		return nil
	}
	_ = all(s).stand(false) // else it would never know; most are not paused
	return s.stop(sig)
}

func (s *shim) note(what *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*what = true
}

// sawLeaseOver takes the kill of a container whose lease was over for what it was:
// a guard may have been quicker, or this process was stopped meanwhile.
func (s *shim) sawLeaseOver() {
	if s.cfg.LeaseFile == "" {
		return
	}
	if left, err := lease.Left(s.cfg.LeaseFile); err == nil && left <= 0 {
		s.note(&s.leaseOver)
	}
}
