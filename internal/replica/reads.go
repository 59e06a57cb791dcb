package replica

import (
	"context"
	"sync"
)

// reads asks a majority whether this member leads, one question for all who want to read at the same time. It is not
// asked for somebody who came after the question was sent: the answer may be older than what that one must see.
type reads struct {
	ask func() error

	mu   sync.Mutex
	next *question // to be sent when the one before is answered; nil: nobody waits
	out  bool      // one is being sent or answered
}

type question struct {
	answered chan struct{}
	err      error
}

// fresh waits for the answer to a question that was sent after the call.
func (r *reads) fresh(ctx context.Context) error {
	q := r.join()
	select {
	case <-q.answered:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *reads) join() *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &question{answered: make(chan struct{})}
	}
	if !r.out {
		r.out = true
		go r.send() // ends when nobody waits
	}
	return r.next
}

func (r *reads) send() {
	for q := r.take(); q != nil; q = r.take() {
		q.err = r.ask()
		close(q.answered)
	}
}

// take gives the question that is to be sent.
func (r *reads) take() *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.next
	r.next, r.out = nil, q != nil
	return q
}
