package contact

import (
	"context"
	"sync"
	"time"
)

// How long a change may wait for others to go with it. An end is told at once:
// what the rank held can be given to the next. The rest is told soon, so that
// a short job needs one message from acceptance to end.
const (
	NewsNow      = 0
	NewsRunning  = 20 * time.Millisecond
	NewsProgress = 250 * time.Millisecond
	NewsPull     = time.Second
	NewsSamples  = 5 * time.Second // steady work of GPUs costs no message of its own
)

// news is when there is something to tell.
type news struct {
	wake chan struct{}

	mu sync.Mutex
	at time.Time // when it is due; zero: there is none
}

// tell asks for a sync within the given time.
func (n *news) tell(within time.Duration) {
	at := time.Now().Add(within)
	n.mu.Lock()
	sooner := n.at.IsZero() || at.Before(n.at)
	if sooner {
		n.at = at
	}
	n.mu.Unlock()
	if sooner {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

// due waits until there is something to tell, and takes it over.
func (n *news) due(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		n.mu.Lock()
		at := n.at
		left := time.Until(at)
		if !at.IsZero() && left <= 0 {
			n.at = time.Time{}
		}
		n.mu.Unlock()
		switch {
		case at.IsZero():
			left = time.Hour
		case left <= 0:
			return ctx.Err()
		}
		timer.Reset(left)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.wake:
		case <-timer.C:
		}
	}
}
