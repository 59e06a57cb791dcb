package watch

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// subscription says when something has changed, by the controller's stream of events.
// It says so once at the beginning, too: what is read after that misses nothing.
type subscription struct {
	changed chan struct{} // holds one: many changes are one
	broken  chan error    // gets the end of the stream
	stop    context.CancelFunc
	done    chan struct{}
}

// subscribe starts the one goroutine that listens; close ends it.
func subscribe(ctx context.Context, c *client.Client, f client.EventFilter) *subscription {
	n := &subscription{changed: make(chan struct{}, 1), broken: make(chan error, 1), done: make(chan struct{})}
	ctx, n.stop = context.WithCancel(ctx)
	go func() {
		defer close(n.done)
		begun := false
		for ev, err := range c.Events(ctx, f) {
			if err != nil {
				n.broken <- err
				return
			}
			if begun && ev.Kind == api.EventPing {
				continue
			}
			begun = true
			select {
			case n.changed <- struct{}{}:
			default:
			}
		}
	}()
	return n
}

func (n *subscription) close() {
	n.stop()
	<-n.done
}
