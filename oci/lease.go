package oci

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci/lease"
)

// leaseRetry is how long to wait for a lease file that cannot be read.
const leaseRetry = 10 * time.Second

// keepLease ends the container when its lease has run out, until done is
// closed. It looks at the file when the lease that it knows of ends, so a lease
// that is renewed costs one look for each of its lengths.
func (s *shim) keepLease(done <-chan struct{}) {
	for {
		left, err := lease.Left(s.cfg.LeaseFile)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			left = leaseRetry // an owner that cannot write it sees to its leases itself
		}
		if left <= 0 {
			s.mu.Lock()
			s.leaseOver = true
			s.mu.Unlock()
			if err := s.stop(unix.SIGKILL); err != nil {
				fmt.Fprintln(os.Stderr, "end a container whose lease ran out:", err)
			}
			left = leaseRetry // look again, in case something was not killed
		}
		timer := time.NewTimer(left)
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// sawLeaseOver takes the kill of a container whose lease was over for what it was:
// a guard may have been quicker, or this process was stopped meanwhile.
func (s *shim) sawLeaseOver() {
	if s.cfg.LeaseFile == "" {
		return
	}
	if left, err := lease.Left(s.cfg.LeaseFile); err == nil && left <= 0 {
		s.mu.Lock()
		s.leaseOver = true
		s.mu.Unlock()
	}
}
