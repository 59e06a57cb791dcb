package noded

import (
	"context"

	"gbatch/internal/node"
)

// A gang starts in two phases. Each rank brings everything here and says that
// it is ready; the controller lets them begin when all are, so that a gang
// whose last node cannot pull the image never ran anywhere.

// awaitGang tells that the rank is ready and waits for the word to begin. The
// place for starting goes to others meanwhile: were it kept, two gangs could
// wait for each other's.
func (r *rank) awaitGang(ctx context.Context) error {
	if r.order.Ranks < 2 {
		return nil
	}
	if err := r.giveSlot(); err != nil {
		return err
	}
	r.change(newsNow, func(s *node.RankStatus) { s.Phase = node.PhaseReady })
	for !r.mayBegin() {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return r.takeSlot(ctx)
}

// letBegin takes the controller's word, which is never taken back. Called with
// a.mu held.
func (r *rank) letBegin(begin bool) {
	if begin && !r.begin {
		r.begin = true
		r.poke()
	}
}

func (r *rank) mayBegin() bool {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	return r.begin
}
