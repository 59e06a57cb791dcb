package oci

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lease is the content of ShimConfig.LeaseFile: until when the container may
// run without anybody saying more. Its owner replaces the file as a whole to
// renew it.
type Lease struct {
	// UntilMS is a moment of the clock that runs from boot and through sleep
	// (CLOCK_BOOTTIME), in milliseconds, so that steps of the wall clock do not
	// touch it.
	UntilMS int64 `json:"untilMs"`
}

// leaseRetry is how long to wait for a lease file that cannot be read.
const leaseRetry = 10 * time.Second

// keepLease ends the container when its lease has run out, until done is
// closed. It looks at the file when the lease that it knows of ends, so a lease
// that is renewed costs one look for each of its lengths.
func (s *shim) keepLease(done <-chan struct{}) {
	for {
		left, err := leaseLeft(s.cfg.LeaseFile)
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

func leaseLeft(file string) (time.Duration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read lease: %w", err)
	}
	var l Lease
	if err := json.Unmarshal(data, &l); err != nil {
		return 0, fmt.Errorf("read lease %s: %w", file, err)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return time.Duration(l.UntilMS)*time.Millisecond - time.Duration(ts.Nano()), nil
}
