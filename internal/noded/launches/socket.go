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
	conns  map[net.Conn]bool
	cancel []uint32 // steps that shall end
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
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	// The path of a socket is short: it is named by the directory's handle.
	path := filepath.Join(fmt.Sprintf("/proc/self/fd/%d", d.Fd()), fileSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := unix.Fchmodat(int(d.Fd()), fileSocket, 0o666, 0); err != nil { // who sees it is in the container
		l.Close()
		return nil, err
	}
	return &Socket{listener: l, recorder: recorder, log: log, places: make(chan struct{}, maxRequests), conns: map[net.Conn]bool{}}, nil
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
		if s.add(c) {
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

func (s *Socket) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= maxConns {
		c.Close()
		return false
	}
	s.conns[c] = true
	if len(s.cancel) > 0 {
		s.send(c, launch.NodeReply{Cancel: s.cancel})
	}
	return true
}

// Cancel says which steps shall end. It may say the same again.
func (s *Socket) Cancel(steps []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = steps
	if len(steps) == 0 {
		return
	}
	for c := range s.conns {
		s.send(c, launch.NodeReply{Cancel: steps})
	}
}

// send is called with mu held. Who does not read loses the connection.
func (s *Socket) send(c net.Conn, r launch.NodeReply) {
	b, err := json.Marshal(r)
	if err == nil {
		err = write(c, append(b, '\n'))
	}
	if err != nil {
		c.Close()
	}
}

func (s *Socket) serve(ctx context.Context, c net.Conn) {
	defer func() {
		c.Close()
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
			r := s.answer(ctx, q)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.send(c, r)
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
