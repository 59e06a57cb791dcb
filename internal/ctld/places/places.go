// Package places lets only so much of each user through at once: requests, bytes,
// work. Who comes when there is no place left waits for one, and nobody waits for
// another user's.
package places

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Places are the same number for each user. Most must be set, and not change.
type Places struct {
	Most int64

	mu     sync.Mutex
	byUser map[string]*places
}

type places struct {
	left  *semaphore.Weighted
	users int // in it and before it
}

// Enter waits for n places, or for all if n is more than there are; false: ctx is
// done. Call leave after true.
func (p *Places) Enter(ctx context.Context, user string, n int64) (leave func(), ok bool) {
	n = min(n, p.Most)
	p.mu.Lock()
	g := p.byUser[user]
	if g == nil {
		g = &places{left: semaphore.NewWeighted(p.Most)}
		if p.byUser == nil {
			p.byUser = map[string]*places{}
		}
		p.byUser[user] = g
	}
	g.users++
	p.mu.Unlock()
	gone := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(p.byUser, user)
		}
	}
	if g.left.Acquire(ctx, n) != nil {
		gone()
		return nil, false
	}
	return func() { g.left.Release(n); gone() }, true
}
