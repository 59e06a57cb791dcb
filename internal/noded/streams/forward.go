package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/oci"
	"gbatch/oci/netns"
)

// serveForward joins the client's stream with a port of the container. An
// error has not been told yet.
func serveForward(ctx context.Context, s *session, container *oci.Container, start []byte) error {
	var want api.ForwardStart
	if err := json.Unmarshal(start, &want); err != nil || want.Port == 0 {
		return errors.New("the client named no port to forward to")
	}
	conn, err := dialContainer(ctx, container, want.Port)
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
func sendPort(ctx context.Context, st *client.Stream, conn *net.TCPConn) {
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

// dialContainer connects to a port on the loopback interface that the
// container sees: the machine's, or that of its own network namespace.
func dialContainer(ctx context.Context, container *oci.Container, port uint16) (*net.TCPConn, error) {
	pid := container.PID()
	if pid == 0 {
		return nil, errors.New("the container has ended")
	}
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, errors.New("the container has ended")
	}
	defer theirs.Close()
	conn, err := netns.Dial(ctx, theirs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	if err != nil {
		var six error
		if conn, six = netns.Dial(ctx, theirs, netip.AddrPortFrom(netip.IPv6Loopback(), port)); six == nil {
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
