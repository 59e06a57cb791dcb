package netns

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Forward passes the connections of a port on the node on to a port in a
// namespace.
type Forward struct {
	Listener  *net.TCPListener // as by Listen
	Namespace *os.File
	Addr      netip.Addr // the namespace's; may be invalid
	Port      uint16     // in the namespace
	// MaxConns bounds the connections at a time; more wait in the kernel's
	// queue. Default 1024.
	MaxConns int
}

const defaultMaxConns = 1024

// Run works until the listener is closed. Connections live on after that.
func (f *Forward) Run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	limit := f.MaxConns
	if limit <= 0 {
		limit = defaultMaxConns
	}
	busy := make(chan struct{}, limit)
	for {
		busy <- struct{}{}
		conn, err := f.Listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			<-busy
			pause(ctx) // too many open files, or a client that went already
			continue
		}
		go func() { // ends with the connection
			defer func() { <-busy }()
			f.serve(conn)
		}()
	}
}

func (f *Forward) serve(conn *net.TCPConn) {
	up, err := f.dial()
	if err != nil {
		// As if the client had asked the container itself: its port is closed.
		reset(conn)
		return
	}
	join(conn, up)
}

// dial finds the server where it may listen. The container's own address comes
// first: what is reached by the loopback address would take a stranger for
// somebody from its own machine.
func (f *Forward) dial() (*net.TCPConn, error) {
	var conn *net.TCPConn
	var err error
	for _, a := range []netip.Addr{f.Addr, loopback4, netip.IPv6Loopback()} {
		if !a.IsValid() {
			continue
		}
		conn, err = Dial(context.Background(), f.Namespace, netip.AddrPortFrom(a, f.Port))
		if !errors.Is(err, unix.ECONNREFUSED) {
			break
		}
	}
	return conn, err
}

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// join copies both ways until both ends have said all, or one went. Either end
// may finish its half first, as many protocols do.
func join(a, b *net.TCPConn) {
	defer a.Close()
	defer b.Close()
	done := make(chan struct{})
	go func() { // ends with the connections
		defer close(done)
		half(a, b)
	}()
	half(b, a)
	<-done
}

// half copies in one direction. If that breaks, the other one shall not wait.
func half(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		reset(from)
		return
	}
	_ = to.CloseWrite()
}

// reset ends a connection so that the other end sees an error and not an end.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// pause keeps a loop from spinning while the machine lacks something.
func pause(ctx context.Context) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
