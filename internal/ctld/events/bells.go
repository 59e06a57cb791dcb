package events

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"gbatch/internal/ctld/loop"
)

// looksPerSecond is how often changes are looked through for those whom they concern.
const looksPerSecond = 50

// bell wakes one stream: with many open pages most changes concern few of them.
type bell struct {
	rings chan struct{} // holds one

	rung bool   // and not heard yet
	seen uint64 // up to this change none concerned it, but for those that it was rung for
}

// bells are those of all streams.
type bells struct {
	mu sync.Mutex
	of map[*eventStream]*bell
}

// hang gives a stream its bell; it takes it down when it ends.
func (b *bells) hang(e *eventStream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[*eventStream]*bell{}
	}
	e.bell = &bell{rings: make(chan struct{}, 1)}
	b.of[e] = e.bell
}

func (b *bells) take(e *eventStream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, e)
}

// hear says from where on a stream looks, having heard its bell or not. What concerns
// it is rung anew from here on.
func (b *bells) hear(e *eventStream) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-e.bell.rings:
	default:
	}
	e.bell.rung = false
	return max(e.pos, e.bell.seen)
}

// ring wakes those whom changes concern; all of them where some were missed. What does not
// concern a stream it need not look through.
func (b *bells) ring(changes []loop.Update, last uint64, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for e, bell := range b.of {
		switch {
		case bell.rung:
		case all && !slices.ContainsFunc(changes, e.concerns):
			bell.seen = last
		default:
			bell.rung = true
			bell.rings <- struct{}{} // there is room: it was heard
		}
	}
}

// Run rings for streams that a change concerns, until ctx is done.
func (s *Source) Run(ctx context.Context) {
	looks := rate.NewLimiter(looksPerSecond, 1)
	for pos := s.Loop.Feed.Position(); ; {
		changes, last, all, more := s.Loop.Feed.After(pos)
		pos = last
		if len(changes) > 0 || !all {
			s.bells.ring(changes, last, all)
		}
		select {
		case <-ctx.Done():
			return
		case <-more:
		}
		if looks.Wait(ctx) != nil {
			return
		}
	}
}
