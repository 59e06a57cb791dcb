package route

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// answerTime is how long a client may take to read an answer, from when it
// begins. A client that never reads holds the answer's memory no longer.
const answerTime = time.Minute

// maxLarge is how many large answers one user has at once. Others of theirs wait.
const maxLarge = 8

// limiter lets so many of each user through at once. The zero value is ready.
type limiter struct {
	mu     sync.Mutex
	byUser map[string]*queue
}

type queue struct {
	places chan struct{}
	users  int // in it and before it
}

// enter waits for a place; false: ctx is done. Call leave after true.
func (t *limiter) enter(ctx context.Context, user string) (leave func(), ok bool) {
	t.mu.Lock()
	g := t.byUser[user]
	if g == nil {
		g = &queue{places: make(chan struct{}, maxLarge)}
		if t.byUser == nil {
			t.byUser = map[string]*queue{}
		}
		t.byUser[user] = g
	}
	g.users++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(t.byUser, user)
		}
	}
	select {
	case g.places <- struct{}{}:
		return func() { <-g.places; gone() }, true
	case <-ctx.Done():
		gone()
		return nil, false
	}
}

// bounded gives an answer a deadline, which begins with its first byte: before,
// the request may be a long poll.
func bounded(w http.ResponseWriter, kind answerKind) http.ResponseWriter {
	if kind == endlessAnswer {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // of an earlier request
		return w
	}
	return &deadlineWriter{ResponseWriter: w}
}

type deadlineWriter struct {
	http.ResponseWriter
	begun bool
}

func (d *deadlineWriter) begin() {
	if !d.begun {
		d.begun = true
		_ = http.NewResponseController(d.ResponseWriter).SetWriteDeadline(time.Now().Add(answerTime))
	}
}

func (d *deadlineWriter) WriteHeader(status int) {
	d.begin()
	d.ResponseWriter.WriteHeader(status)
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	d.begin()
	return d.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (d *deadlineWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }
