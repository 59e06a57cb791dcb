package rank

import (
	"context"
	"time"

	"gbatch/internal/client"
)

const (
	roomLook = 50 * time.Millisecond // how often is looked whether there is room
	roomMost = time.Minute           // after so long a start fails by itself, and says for want of what
)

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
