package ctld

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// manyPolls is how many long polls TestManyPolls holds open, each on a
// connection of its own.
const manyPolls = 3000

// TestManyPolls: thousands wait for a job's change, the controller answers
// others meanwhile, and all hear of the change.
func TestManyPolls(t *testing.T) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil || lim.Cur < 2*manyPolls+500 {
		t.Skipf("SKIPPED: %d files may be open, %d are needed: raise ulimit -n (%v)", lim.Cur, 2*manyPolls+500, err)
	}
	s := newSite(t, nil)
	s.submit(hello(1), "")
	version := s.job("1").Version
	path := strings.TrimPrefix(s.server.Addresses()[0], "unix://")
	var all sync.WaitGroup
	var mu sync.Mutex
	faults := map[string]int{}
	for range manyPolls {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /v1/jobs/1?wait=120&version=%d HTTP/1.1\r\nHost: gctld\r\n\r\n", version); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { // ends with the answer
			defer conn.Close()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				var text []byte
				text, err = io.ReadAll(resp.Body)
				if !strings.Contains(string(text), string(job.OnHold)) {
					err = errors.Join(err, fmt.Errorf("status %d", resp.StatusCode))
				}
			}
			if err != nil {
				mu.Lock()
				faults[err.Error()]++
				mu.Unlock()
			}
		})
	}
	waitFor(t, "all polls are open", func() bool {
		bells := &s.server.loop.jobs
		bells.mu.Lock()
		defer bells.mu.Unlock()
		return bells.m[1] != nil && bells.m[1].waiters == manyPolls
	})
	if _, err := s.Status(t.Context()); err != nil {
		t.Errorf("another client: %v", err)
	}
	if _, err := s.Action(t.Context(), "hold", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if len(faults) > 0 {
		t.Errorf("polls that failed: %v", faults)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

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

// TestConnectionIsUsedAgain: the deadline of one answer is none for the next on
// the same connection.
func TestConnectionIsUsedAgain(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	c := &client.Client{Address: s.Address}
	defer c.Close()
	for range 3 {
		if _, err := c.Jobs(t.Context(), client.JobFilter{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Log(t.Context(), "1", client.LogOptions{}); !client.IsCode(err, api.CodeConflict) {
			t.Fatal(err)
		}
	}
}

// TestLargeAnswers: one user has few large answers in memory, whoever does not
// read them; others are not held up, and who waits and goes leaves nothing.
func TestLargeAnswers(t *testing.T) {
	var g turnstile
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
