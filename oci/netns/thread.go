package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// onThread runs f on a thread that ends afterwards, as it may be in another
// namespace then. It is never the process's first thread: that one cannot end,
// and /proc/self would show its namespace as the process's.
func onThread(f func()) {
	done := make(chan struct{})
	var run func(locked chan struct{})
	run = func(locked chan struct{}) {
		runtime.LockOSThread() // and no unlock: the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			// While this one stays bound, the next goroutine gets another thread.
			next := make(chan struct{})
			go run(next) // ends with f
			<-next
			runtime.UnlockOSThread()
			close(locked)
			return
		}
		close(locked)
		defer close(done)
		f()
	}
	go run(make(chan struct{})) // ends with f, which is waited for
	<-done
}

// inside runs f in a namespace. Sockets that f makes stay in it and can be
// used from everywhere.
func inside(ns *os.File, f func() error) error {
	var err error
	onThread(func() {
		if err = enter(ns); err == nil {
			err = f()
		}
	})
	return err
}

// enter moves the thread. The file may be closed meanwhile by somebody else.
func enter(ns *os.File) error {
	raw, err := ns.SyscallConn()
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	var setErr error
	err = raw.Control(func(fd uintptr) { setErr = unix.Setns(int(fd), unix.CLONE_NEWNET) })
	if err := errors.Join(err, setErr); err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	return nil
}

// newNamespace makes a network namespace, which lives until the file and all
// copies of it are closed and no process is in it.
func newNamespace() (*os.File, error) {
	var ns *os.File
	var err error
	onThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("make network namespace: %w", err)
			return
		}
		ns, err = os.Open("/proc/thread-self/ns/net")
	})
	return ns, err
}

// dialTimeout bounds a connection attempt inside one machine.
const dialTimeout = 5 * time.Second

// Dial connects to a TCP port in a namespace.
func Dial(ctx context.Context, ns *os.File, to netip.AddrPort) (*net.TCPConn, error) {
	var conn net.Conn
	err := inside(ns, func() (err error) {
		// A literal address and no second attempt beside the first: all of the
		// dialing is done on this thread.
		d := net.Dialer{Timeout: dialTimeout, FallbackDelay: -1}
		conn, err = d.DialContext(ctx, "tcp", to.String())
		return err
	})
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}
