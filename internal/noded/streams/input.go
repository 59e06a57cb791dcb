package streams

import (
	"context"
	"sync"

	"gbatch/internal/api"
)

// inputQueue is input on its way to something that may not take it. It is as
// long as api.StreamWindow allows.
type inputQueue struct {
	mu    sync.Mutex
	buf   []byte
	held  int  // bytes that the client was not given back yet
	ended bool // no more comes
	wake  chan struct{}
}

func newInputQueue() *inputQueue { return &inputQueue{wake: make(chan struct{}, 1)} }

// put adds a copy of p, or says that there is no room that the client was
// given.
func (q *inputQueue) put(p []byte) bool {
	q.mu.Lock()
	ok := q.held+len(p) <= api.StreamWindow
	if ok {
		q.held += len(p)
		q.buf = append(q.buf, p...)
	}
	q.mu.Unlock()
	q.poke()
	return ok
}

func (q *inputQueue) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	q.poke()
}

func (q *inputQueue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take waits for input and takes all there is. Nothing means that no more
// comes.
func (q *inputQueue) take(ctx context.Context) ([]byte, error) {
	for {
		q.mu.Lock()
		buf, ended := q.buf, q.ended
		q.buf = nil
		q.mu.Unlock()
		if len(buf) > 0 || ended {
			return buf, nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// took gives n bytes of room back.
func (q *inputQueue) took(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held -= n
}
