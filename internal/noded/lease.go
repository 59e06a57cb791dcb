package noded

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/job"
)

// leaseGrace is how long ranks may take to end when the lease has run out. It
// is well below what the controller waits beyond the lease, a quarter of it,
// before it gives the task away. If the daemon is dead by then, the shims see
// to it.
func leaseGrace(lease time.Duration) time.Duration { return min(5*time.Second, lease/8) }

// leaseLoop ends every rank when the controller has not been heard for the
// length of the lease: by then it may give the tasks to other nodes, and no
// task may run twice.
func (a *Agent) leaseLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.leaseC:
		case <-timer.C:
		}
		left, silent := a.contact.left()
		if left <= 0 {
			a.leaseOver(silent)
			left = a.contact.grace() // look again: a rank may have been starting
		}
		timer.Reset(left)
	}
}

// leaseWake makes the loop look at a lease that was renewed.
func (a *Agent) leaseWake() {
	select {
	case a.leaseC <- struct{}{}:
	default:
	}
}

func (a *Agent) leaseOver(silent time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprintf("lost contact with the controller for %s", silent.Round(time.Second))
	for _, r := range a.ranks {
		r.requestStop(stopRequest{Signal: "TERM", Grace: a.contact.grace(), Reason: job.NodeFail, Text: text})
	}
}
