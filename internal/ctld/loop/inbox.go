package loop

import (
	"context"
	"sync"

	"gbatch/internal/control"
	"gbatch/internal/ctld/fair"
)

// inbox is what waits for the loop. Of it, a turn takes from each user about as
// much: who sends ten times as much has only their own waiting longer.
type inbox struct {
	mu    sync.Mutex
	queue *fair.Queue[request]

	more chan struct{} // something came; buffered
}

const (
	inboxSize = 16384 // requests that may wait for the loop: those of all nodes when a controller begins to answer
	batchSize = 512   // events that share one commit
	userShare = 128   // cost of one user's among them, so that a turn stays short for the others
)

func newInbox() inbox {
	return inbox{queue: fair.NewQueue[request](inboxSize), more: make(chan struct{}, 1)}
}

// put lets a request wait. If there are too many, the last one of who has the
// most is told so, which may be this one.
func (b *inbox) put(user string, cost int, r request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out, ok := b.queue.Put(user, cost, r)
	if !ok {
		out.reply <- ErrBusy // buffered
	}
	b.ring()
}

func (b *inbox) ring() {
	select {
	case b.more <- struct{}{}:
	default: // it was said already
	}
}

// take gives what the next turn does.
func (b *inbox) take() []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.more: // else there would be another turn for what this one does
	default:
	}
	out := b.queue.Take(batchSize, userShare)
	if b.queue.Len() > 0 {
		b.ring()
	}
	return out
}

func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.Len()
}

// Costs of requests, of which most are 1: what they take of the loop's time, roughly.
const (
	costAsk   = 8  // a question may look at the whole queue
	actsInOne = 16 // jobs that are acted on for the cost of one submission
)

func costOf(ev any) int {
	if a, ok := ev.(control.Act); ok {
		return 1 + len(a.Numbers)/actsInOne
	}
	return 1
}

type userKey struct{}

// WithUser says whose a request in ctx is, for its turn. Those of nobody, which
// are the controller's own, have turns together.
func WithUser(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

func userOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}
