package rank

import (
	"context"

	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
)

// A gang starts in two phases. Each rank brings everything here and says that
// it is ready; the controller lets them begin when all are, so that a gang
// whose last node cannot pull the image never ran anywhere.

// awaitGang tells that the rank is ready and waits for the word to begin. The
// place for starting goes to others meanwhile: were it kept, two gangs could
// wait for each other's.
func awaitGang(ctx context.Context, ranks int, place *slot, s *state) error {
	if ranks < 2 {
		return nil
	}
	if err := place.giveBack(); err != nil {
		return err
	}
	s.change(contact.AtOnce, func(st *node.RankStatus) { st.Phase = node.PhaseReady })
	for !s.mayBegin() {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return place.take(ctx)
}
