// Package turn is in whose place a rank begins, and who begins in its own: the controller orders
// ranks ahead, so that none of them waits for its word.
package turn

import (
	"context"
	"sync"
	"sync/atomic"
)

// Turn is that of one rank.
type Turn struct {
	before   atomic.Pointer[Turn] // that of the rank that this one follows; nil: none, or it has come
	followed atomic.Bool          // another rank follows this one
	over     chan struct{}        // closed when this one has given back what it held, or never had anything
	once     sync.Once
	placed   chan struct{} // closed when it is known what this one holds or is to hold, or that it is over
	place    sync.Once
}

// New is the turn of a rank that follows none.
func New() *Turn { return &Turn{over: make(chan struct{}), placed: make(chan struct{})} }

// Follow has a rank that was just made begin when another one has ended, however that ends.
func (t *Turn) Follow(other *Turn) {
	t.before.Store(other)
	other.followed.Store(true)
}

// Followed says whether another rank has the place after this one.
func (t *Turn) Followed() bool { return t.followed.Load() }

// Await waits for the rank's turn. One that it follows may be ended before its own has come: then
// this one takes its place behind others.
func (t *Turn) Await(ctx context.Context) error {
	for b := t.before.Load(); b != nil; b = b.before.Load() {
		select {
		case <-b.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	t.before.Store(nil) // nobody is held in memory by those after it
	return nil
}

// Placed says that it is known what the rank holds, or is to hold.
func (t *Turn) Placed() { t.place.Do(func() { close(t.placed) }) }

// AwaitPlace waits until that is known of the rank that this one follows, or that one is over. It comes before the turn.
func (t *Turn) AwaitPlace(ctx context.Context) error {
	b := t.before.Load()
	if b == nil {
		return nil
	}
	select {
	case <-b.placed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Pass lets the next one begin.
func (t *Turn) Pass() {
	t.Placed()
	t.once.Do(func() { close(t.over) })
}
