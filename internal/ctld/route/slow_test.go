package route

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestClientThatNeverReads: a client that asks and does not read is given up
// after answerTime, with what was kept for it; one that polls is not.
func TestClientThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe() // no buffer: the first byte waits for a reader
		ln := &oneListener{conns: make(chan net.Conn, 1)}
		ln.conns <- here
		done := make(chan error, 1)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(5 * time.Minute) // a long poll
			_, err := bounded(w, shortAnswer).Write(make([]byte, 1<<20))
			done <- err
		})}
		go srv.Serve(ln) // ended below
		go fmt.Fprint(there, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		began := time.Now()
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the answer was written: %v", err)
		}
		if took := time.Since(began); took != 5*time.Minute+answerTime {
			t.Errorf("it was given up after %v", took)
		}
		there.Close()
		srv.Close()
	})
}

// TestLargeAnswers: one user has few large answers in memory, whoever does not
// read them; others are not held up, and who waits and goes leaves nothing.
func TestLargeAnswers(t *testing.T) {
	var g limiter
	var leave []func()
	for range maxLarge {
		l, ok := g.enter(t.Context(), "ann")
		if !ok {
			t.Fatal("no place")
		}
		leave = append(leave, l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := g.enter(ctx, "ann"); ok {
		t.Error("one too many was let in")
	}
	other, ok := g.enter(ctx, "bob")
	if !ok {
		other, ok = g.enter(t.Context(), "bob") // select may have taken the done context
	}
	if !ok {
		t.Fatal("another user was held up")
	}
	other()
	leave[0]()
	if leave[0], ok = g.enter(t.Context(), "ann"); !ok {
		t.Error("the place that was left was not given")
	}
	for _, l := range leave {
		l()
	}
	if len(g.byUser) != 0 {
		t.Errorf("%d gates are left", len(g.byUser))
	}
}

// oneListener gives the connections that it has.
type oneListener struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *oneListener) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

func (l *oneListener) Addr() net.Addr { return &net.UnixAddr{Name: "test"} }
