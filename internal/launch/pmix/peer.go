package pmix

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"

	"gbatch/internal/launch/pmix/wire"
)

// peer is one connection of a task.
type peer struct {
	conn    net.Conn
	task    int
	format  wire.Format
	version wire.Version
	index   uint32
	done    bool // it has said good-bye
	open    int  // requests that are not answered yet; guarded by the server's mu

	mu    sync.Mutex
	out   [][]byte // that is not written yet
	size  int      // of out
	ready chan struct{}
}

// What bounds a peer: a message, what waits to be read by it, and how many
// requests wait for others.
const (
	maxMessage = 16 << 20
	maxOut     = 256 << 20
	maxOpen    = 4096
)

// serve serves one connection until it ends.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(helloTime))
	in := bufio.NewReaderSize(conn, 16<<10)
	h, err := wire.ReadHello(in)
	if err != nil {
		return
	}
	p, why := s.admit(conn, h)
	if p == nil {
		_, _ = conn.Write(wire.Refuse(why))
		return
	}
	defer s.leave(p)
	if _, err := conn.Write(wire.Welcome(p.index)); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	over := make(chan struct{})
	defer close(over)
	go p.write(over) // ends with over
	for {
		f, err := wire.ReadFrame(in, maxMessage)
		if err != nil || !s.take(p, f) {
			return
		}
	}
}

// admit lets a client in that knows the name of the step and speaks as this server
// does.
func (s *Server) admit(conn net.Conn, h wire.Hello) (*peer, wire.Status) {
	format, known := wire.Formats[h.Format]
	if h.Kind != wire.Client || !known || h.Buffers != wire.Plain {
		return nil, wire.NotSupported
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Proc.Space != s.c.Space || s.closed || h.Proc.Rank >= uint32(s.c.Layout.Tasks) || !s.own[int(h.Proc.Rank)] {
		return nil, wire.NotFound
	}
	p := &peer{conn: conn, task: int(h.Proc.Rank), format: format, version: h.Version, index: h.Proc.Rank, ready: make(chan struct{}, 1)}
	if !s.served(p.task) { // a program that the task starts after another begins anew
		s.drop(p.task)
	}
	s.peers[p] = true
	return p, wire.OK
}

// served tells whether a task has a connection.
func (s *Server) served(task int) bool {
	for p := range s.peers {
		if p.task == task {
			return true
		}
	}
	return false
}

func (s *Server) leave(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, p)
	if !p.done {
		s.lost(p.task)
	}
}

// write writes what waits, until over.
func (p *peer) write(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-p.ready:
		}
		p.mu.Lock()
		out := net.Buffers(p.out)
		p.out, p.size = nil, 0
		p.mu.Unlock()
		if _, err := out.WriteTo(p.conn); err != nil {
			p.conn.Close()
			return
		}
	}
}

// reply answers a request.
func (p *peer) reply(tag uint32, body []byte) {
	b := wire.Frame{Tag: tag, Body: body}.Append(nil, p.index)
	p.mu.Lock()
	p.out, p.size = append(p.out, b), p.size+len(b)
	much := p.size > maxOut
	p.mu.Unlock()
	if much {
		p.conn.Close() // it does not read
	}
	select {
	case p.ready <- struct{}{}:
	default: // it is told already
	}
}

// status answers a request by how it went.
func (p *peer) status(tag uint32, s wire.Status) {
	w := wire.Writer{Format: p.format}
	w.Status(s)
	p.reply(tag, w.Buf)
}

// why is what a client is told of what could not be read.
func why(err error) wire.Status {
	if errors.Is(err, wire.ErrType) {
		return wire.UnknownType
	}
	return wire.Unreadable
}
