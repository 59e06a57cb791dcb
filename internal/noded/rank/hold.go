package rank

import (
	"context"
	"errors"
	"slices"
	"time"
)

// hold is a wish of this daemon's that the rank's processes stand still for some
// time, whatever is ordered. It is gone with the daemon: the next one makes them do
// what is ordered.
type hold struct {
	ready  chan struct{} // closed when they do
	broken chan struct{} // closed when they no longer do
}

// holdTime is how long processes may take to stand still.
const holdTime = 10 * time.Second

// Hold makes a rank's processes stand still until release is called. A stop of
// the rank breaks it, and closes broken.
func Hold(ctx context.Context, r *Rank) (broken <-chan struct{}, release func(), err error) {
	h := &hold{make(chan struct{}), make(chan struct{})}
	s := r.state
	s.mu.Lock()
	s.holds = append(s.holds, h)
	s.mu.Unlock()
	s.poke()
	release = func() {
		s.mu.Lock()
		s.holds = slices.DeleteFunc(s.holds, func(o *hold) bool { return o == h })
		s.mu.Unlock()
		s.poke()
	}
	ctx, cancel := context.WithTimeout(ctx, holdTime)
	defer cancel()
	select {
	case <-h.ready:
		return h.broken, release, nil
	case <-h.broken:
		err = errors.New("the job ends")
	case <-r.Container().Done():
		err = errors.New("the job has ended")
	case <-ctx.Done():
		err = errors.New("the job's processes cannot be made to stand still: they wait for something in the kernel")
	}
	release()
	return nil, nil, err
}

// still is whether the rank shall stand still; nil: not told yet.
func (s *state) still() *bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.holds) > 0 {
		return new(true)
	}
	return s.paused
}

// stands tells those who hold the rank that it stands still.
func (s *state) stands() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		select {
		case <-h.ready:
		default:
			close(h.ready)
		}
	}
}

// breakHolds tells those who hold the rank that it goes on, to end.
func (s *state) breakHolds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		close(h.broken)
	}
	s.holds = nil
}
