// Package launches is the node's side of steps that srun starts in a batch
// script: a socket in the container of the job's first rank, by which they are
// recorded and numbered by the controller, and cancelled. Who uses the socket is
// the job: it can say nothing of others. What it says is bounded here and checked
// by the controller.
package launches

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
)

// Recorder has steps of one rank recorded. An error that is a Refused is the
// controller's answer; any other means that it was not reached.
type Recorder interface {
	Begin(context.Context, launch.NodeBegin) (uint32, error)
	End(context.Context, launch.NodeEnd) error
}

// Refused is why a step may not be begun.
type Refused struct{ Text string }

func (r Refused) Error() string { return r.Text }

// Socket is that of one rank.
type Socket struct {
	listener *net.UnixListener
	recorder Recorder
	log      *slog.Logger
	places   chan struct{} // one for each request under way
	all      sync.WaitGroup

	mu     sync.Mutex
	conns  map[*conn]bool
	cancel []uint32 // steps that shall end
}

// conn is one connection. Whoever is at its other end may not read: only what
// works for it waits for it.
type conn struct {
	net.Conn
	wake chan struct{} // has room: there may be steps that shall end

	mu sync.Mutex // guards writes
}

// Bounds of one rank's socket.
const (
	maxRequests = 16 // under way at a time; more wait
	maxConns    = 16
	maxLine     = 256 << 10
)

const fileSocket = "sock"

// Open listens in a rank's directory, where an earlier daemon may have listened.
func Open(dir string, recorder Recorder, log *slog.Logger) (*Socket, error) {
	l, err := listen(dir, fileSocket)
	if err != nil {
		return nil, err
	}
	return &Socket{listener: l, recorder: recorder, log: log, places: make(chan struct{}, maxRequests), conns: map[*conn]bool{}}, nil
}

func listen(dir, name string) (*net.UnixListener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	// The path of a socket is short: it is named by the directory's handle.
	path := filepath.Join(fmt.Sprintf("/proc/self/fd/%d", d.Fd()), name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := unix.Fchmodat(int(d.Fd()), name, 0o666, 0); err != nil { // who sees it is in the container
		l.Close()
		return nil, err
	}
	return l, nil
}

// Serve serves until the context ends.
func (s *Socket) Serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	for {
		c, err := s.listener.Accept()
		if err != nil {
			break
		}
		if c := s.add(c); c != nil {
			s.all.Go(func() { s.serve(ctx, c) }) // ends with the connection, which close closes
		}
	}
	s.all.Wait()
}

func (s *Socket) close() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// add is nil for a connection too many, which it closes.
func (s *Socket) add(raw net.Conn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= maxConns {
		raw.Close()
		return nil
	}
	c := &conn{Conn: raw, wake: make(chan struct{}, 1)}
	s.conns[c] = true
	c.ring()
	return c
}

// Cancel says which steps shall end. It may say the same again. It waits for
// nobody.
func (s *Socket) Cancel(steps []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = steps
	if len(steps) == 0 {
		return
	}
	for c := range s.conns {
		c.ring()
	}
}

func (c *conn) ring() {
	select {
	case c.wake <- struct{}{}:
	default: // it was said already
	}
}

// tell says which steps shall end, until done is closed.
func (s *Socket) tell(c *conn, done <-chan struct{}) {
	for {
		select {
		case <-c.wake:
		case <-done:
			return
		}
		s.mu.Lock()
		steps := s.cancel
		s.mu.Unlock()
		if len(steps) > 0 {
			c.send(launch.NodeReply{Cancel: steps})
		}
	}
}

// send sends one message. Who does not read loses the connection.
func (c *conn) send(r launch.NodeReply) {
	b, err := json.Marshal(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		err = write(c, append(b, '\n'))
	}
	if err != nil {
		c.Close()
	}
}

func (s *Socket) serve(ctx context.Context, c *conn) {
	done := make(chan struct{})
	s.all.Go(func() { s.tell(c, done) }) // ends with this
	defer func() {
		c.Close()
		close(done)
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	in := bufio.NewScanner(c)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		var q launch.NodeRequest
		if json.Unmarshal(in.Bytes(), &q) != nil {
			return
		}
		s.places <- struct{}{}
		s.all.Go(func() { // ends with ctx or the answer
			defer func() { <-s.places }()
			c.send(s.answer(ctx, q))
		})
	}
}

func (s *Socket) answer(ctx context.Context, q launch.NodeRequest) launch.NodeReply {
	r := launch.NodeReply{Seq: q.Seq}
	var err error
	switch {
	case q.Begin != nil:
		r.Step, err = s.recorder.Begin(ctx, *q.Begin)
	case q.End != nil:
		r.Step, err = q.End.Step, s.recorder.End(ctx, *q.End)
	default:
		err = Refused{"a request that this version does not know"}
	}
	if refused := (Refused{}); errors.As(err, &refused) {
		r.Error = refused.Text
	} else if err != nil {
		s.log.Debug("record step", "error", err)
		r.Later = true
	}
	return r
}
