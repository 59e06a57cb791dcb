package noded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/oci"
)

// serveForward joins the client's stream with a port of the container. An
// error has not been told yet.
func serveForward(ctx context.Context, st *client.Stream, shim *oci.Shim, start []byte) error {
	var want api.ForwardStart
	if err := json.Unmarshal(start, &want); err != nil || want.Port == 0 {
		return errors.New("the client named no port to forward to")
	}
	conn, err := dialContainer(ctx, shim, want.Port)
	if err != nil {
		return err
	}
	defer conn.Close()
	live, gone := context.WithCancel(ctx) // until the client or the daemon goes
	var copies sync.WaitGroup
	input := newInputQueue()
	copies.Go(func() { // ends with the client
		defer gone()
		receiveInput(live, st, input)
	})
	copies.Go(func() { feed(live, st, input, conn, func() { _ = conn.CloseWrite() }) }) // ends with the client
	copies.Go(func() { sendPort(live, st, conn) })                                      // ends with either side
	<-live.Done()
	gone()
	st.Close()
	conn.Close()
	copies.Wait()
	return nil
}

// receiveInput takes what the client sends until it goes.
func receiveInput(ctx context.Context, st *client.Stream, input *inputQueue) {
	for {
		f, err := st.Receive(ctx)
		switch {
		case err != nil:
			return
		case f.Type == api.FrameInput && !input.put(f.Data):
			return // it sends more than it may
		case f.Type == api.FrameEndInput:
			input.end()
		}
	}
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

// dialTimeout bounds a connection within this machine.
const dialTimeout = 10 * time.Second

// dialContainer connects to a port on the loopback interface that the
// container sees: the machine's, or that of its own network namespace.
func dialContainer(ctx context.Context, shim *oci.Shim, port uint16) (*net.TCPConn, error) {
	pid := shim.PID()
	if pid == 0 {
		return nil, errors.New("the container has ended")
	}
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, errors.New("the container has ended")
	}
	defer theirs.Close()
	var conn net.Conn
	done := make(chan struct{})
	go func() { // a thread may be lost with it; awaited below
		defer close(done)
		err = inNetwork(theirs, func() (err error) {
			conn, err = dialLoopback(ctx, port)
			return err
		})
	}()
	<-done
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing listens on port %d of the job", port)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to port %d of the job: %w", port, err)
	}
	return conn.(*net.TCPConn), nil
}

// inNetwork runs f on a thread that is in another network namespace. A thread
// that cannot come back ends with its goroutine.
func inNetwork(theirs *os.File, f func() error) error {
	runtime.LockOSThread()
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer ours.Close()
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter the container's network: %w", err)
	}
	err = f()
	if unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
	return err
}

// dialLoopback tries both loopback addresses, on the calling thread: an
// address without a name needs no other.
func dialLoopback(ctx context.Context, port uint16) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	text := strconv.Itoa(int(port))
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", text))
	if err == nil {
		return conn, nil
	}
	if conn, six := d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", text)); six == nil {
		return conn, nil
	}
	return nil, err
}
