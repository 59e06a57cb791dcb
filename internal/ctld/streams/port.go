package streams

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/access"
	"gbatch/internal/state"
)

// Dial connects to a port of a rank for somebody who may enter it. The connection ends
// with ctx, and with the rank.
func (s *OfJobs) Dial(ctx context.Context, id access.Identity, j *state.Job, rank int, port uint16) (net.Conn, error) {
	home, req, err := s.Enterable(id, j, rank, api.StreamForward)
	if err != nil {
		return nil, err
	}
	end, err := s.Streams.Begin(id.User)
	if err != nil {
		return nil, err
	}
	st := &stream{ctx: ctx, begun: make(chan struct{}), done: make(chan error, 1)}
	defer s.Streams.drop(req.ID)
	if err := s.Streams.await(st, asked{node: home, req: req, wait: streamWait, wake: func() { s.Loop.Nodes.Notify(home) }}); err != nil {
		s.Streams.leave(st)
		end()
		return nil, err
	}
	c := &portConn{st: client.StreamOver(st.node), home: home}
	c.ctx, c.cancel = context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	c.end = sync.OnceFunc(func() {
		stop()
		c.cancel()
		_ = c.st.Close() // more than once is fine
		end()
	})
	if err := c.st.Send(c.ctx, api.JSONFrame(api.FrameStart, api.ForwardStart{Port: port})); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// portConn is a job's port as a connection. One goroutine reads at a time.
type portConn struct {
	st     *client.Stream
	home   string // the node
	ctx    context.Context
	cancel context.CancelFunc
	end    func()

	rest []byte // what was received and not read
	over error  // nothing more comes
}

func (c *portConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 && c.over == nil {
		f, err := c.st.Receive(c.ctx)
		switch {
		case err != nil:
			c.over = err
		case f.Type == api.FrameOutput:
			c.rest = f.Data
		case f.Type == api.FrameEndOutput:
			c.over = io.EOF
		case f.Type == api.FrameError:
			c.over = f.Failure()
		}
	}
	if len(c.rest) == 0 {
		return 0, c.over
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *portConn) Write(p []byte) (int, error) {
	if err := c.st.SendInput(c.ctx, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *portConn) Close() error {
	c.end()
	return nil
}

func (c *portConn) LocalAddr() net.Addr  { return portAddr("controller") }
func (c *portConn) RemoteAddr() net.Addr { return portAddr(c.home) }

// Deadlines are contexts here.
func (c *portConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *portConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *portConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// portAddr is a side of such a connection.
type portAddr string

func (a portAddr) Network() string { return "job" }
func (a portAddr) String() string  { return string(a) }
