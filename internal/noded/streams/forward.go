package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"syscall"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/oci"
	"gbatch/oci/netns"
)

// portConn is a connection with a port of a container.
type portConn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// serveForward joins the client's stream with a port of the container. An
// error has not been told yet.
func (n *Streams) serveForward(ctx context.Context, s *session, container *oci.Container, start []byte) error {
	var want api.ForwardStart
	if err := json.Unmarshal(start, &want); err != nil || want.Port == 0 {
		return errors.New("the client named no port to forward to")
	}
	conn, err := n.dialContainer(ctx, container, want.Port)
	if err != nil {
		return err
	}
	defer conn.Close()
	live, gone := context.WithCancel(ctx) // until the client or the daemon goes
	s.join(live, gone, peer{in: conn, endInput: func() { _ = conn.CloseWrite() }})
	s.copies.Go(func() { sendPort(live, s.st, conn) }) // ends with either side
	<-live.Done()
	gone()
	s.st.Close()
	conn.Close()
	s.copies.Wait()
	return nil
}

// sendPort sends what comes from the port until its end.
func sendPort(ctx context.Context, st *client.Stream, conn io.Reader) {
	buf := make([]byte, api.FrameChunk)
	for {
		n, err := conn.Read(buf)
		if n > 0 && st.Send(ctx, api.Frame{Type: api.FrameOutput, Data: buf[:n]}) != nil {
			return
		}
		if err != nil {
			_ = st.Send(ctx, api.Frame{Type: api.FrameEndOutput}) // or the client has gone
			return
		}
	}
}

// dialContainer connects to a port on the loopback interface that the container
// sees. In the node's own network that has services which are not the job's: there
// a process in the container's group connects, see package hostnet.
func (n *Streams) dialContainer(ctx context.Context, container *oci.Container, port uint16) (portConn, error) {
	pid := container.PID()
	if pid == 0 {
		return nil, errors.New("the container has ended")
	}
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, errors.New("the container has ended")
	}
	defer theirs.Close()
	dial := func(to netip.AddrPort) (portConn, error) { return dialNamespace(ctx, theirs, to) }
	if ours, err := isOurs(theirs); err != nil {
		return nil, err
	} else if ours {
		dial = func(to netip.AddrPort) (portConn, error) { return n.dialInside(container, to) }
	}
	conn, err := dial(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	if err != nil {
		if conn, six := dial(netip.AddrPortFrom(netip.IPv6Loopback(), port)); six == nil {
			return conn, nil
		}
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing listens on port %d of the job", port)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to port %d of the job: %w", port, err)
	}
	return conn, nil
}

// dialNamespace keeps a nil connection from being an interface that is not.
func dialNamespace(ctx context.Context, ns *os.File, to netip.AddrPort) (portConn, error) {
	conn, err := netns.Dial(ctx, ns, to)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// isOurs says whether a network namespace is the daemon's own.
func isOurs(ns *os.File) (bool, error) {
	theirs, err := ns.Stat()
	if err != nil {
		return false, err
	}
	ours, err := os.Stat("/proc/self/ns/net")
	return err == nil && os.SameFile(theirs, ours), err
}
