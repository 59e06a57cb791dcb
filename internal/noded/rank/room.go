package rank

import (
	"context"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
)

const (
	roomLook = 50 * time.Millisecond // how often is looked whether there is room
	roomMost = time.Minute           // after so long a start fails by itself, and says for want of what
)

// refuseUnfit refuses to begin on a machine that is not fit for jobs: the controller may
// not have known when it sent the order, and queues the job again.
func refuseUnfit(n *Node) error {
	if why := n.Health.Fit(); why != "" {
		return reason.Errorf(job.Server, "node %s is not fit for jobs: %s", n.Config.Name, why)
	}
	return nil
}

// awaitLeavers waits until the ranks that the controller does not want any more have
// ended: it has given away what they hold, as when a node was cut off for long.
func awaitLeavers(ctx context.Context, n *Node, s *state) error {
	if !n.Leaving() {
		return nil
	}
	s.setProgress("waiting for earlier ranks to end")
	defer s.setProgress("")
	for end := time.Now().Add(roomMost + n.Hooks.Longest()); n.Leaving() && time.Now().Before(end); {
		if client.Sleep(ctx, roomLook) != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
