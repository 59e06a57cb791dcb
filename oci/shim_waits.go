package oci

import (
	"errors"
	"path/filepath"

	"gbatch/oci/result"
	"gbatch/oci/wire"
)

// A container that waits is made while another one runs in its place: all is there but the
// program, which begins by the word of who started the shim. The mark that says that the user's
// code may have run is made when that has come.

// waits says whether the container of a directory waits for the word to begin, and has not had it.
func waits(dir string) bool {
	cfg, err := readShim(dir)
	return err == nil && cfg.Waits && !exists(filepath.Join(dir, result.FileBegun))
}

// awaitWord returns when the program may begin: at once, if it need not wait.
func awaitWord(s *shim, process process) (err error) {
	if !s.cfg.Waits {
		return nil
	}
	s.setPhase(wire.PhaseMade, 0)
	<-s.word
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if err = errStopped; !stopped {
		if err = result.WriteBegun("."); err == nil {
			return nil
		}
	}
	return s.abandon(process, err)
}

// mayBegin is the word to begin.
func mayBegin(s *shim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.cfg.Waits:
		return errors.New("the container does not wait for a word to begin")
	case s.stopped:
		return errStopped
	}
	s.worded()
	return nil
}

// starterGone drops a container that waits: nobody else will tell it to begin.
func starterGone(s *shim) {
	s.mu.Lock()
	select {
	case <-s.word:
	default:
		s.dropped = s.cfg.Waits
	}
	dropped := s.dropped
	s.stopped = s.stopped || dropped
	s.mu.Unlock()
	if dropped {
		s.worded()
		complain(s.breakOff())
	}
}
