package noded

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/job"
)

// leaseGrace is how long ranks may take to end when the lease has run out. The
// controller waits for longer than the lease before it gives the task away.
const leaseGrace = 5 * time.Second

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
			left = leaseGrace // look again: a rank may have been starting
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
		r.requestStop(stopRequest{Signal: "TERM", Grace: leaseGrace, Reason: job.NodeFail, Text: text})
	}
}
