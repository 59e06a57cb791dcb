package contact

import (
	"context"
	"time"
)

// watchLease ends every rank when the controller has not been heard for the
// length of the lease: by then it may give the tasks to other nodes, and no
// task may run twice.
func (c *Contact) watchLease(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.leaseC:
		case <-timer.C:
		}
		left, silent := c.lease.left()
		if left <= 0 {
			c.Node.LeaseOver(silent, c.lease.grace())
			left = c.lease.grace() // look again: a rank may have been starting
		}
		timer.Reset(left)
	}
}

// renewed makes watchLease look at a lease that was renewed.
func (c *Contact) renewed() {
	select {
	case c.leaseC <- struct{}{}:
	default:
	}
}
