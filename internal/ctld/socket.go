package ctld

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gbatch/internal/ctld/site"
)

// socketLook is how often it is looked whether the socket's file is still there.
const socketLook = 2 * time.Second

// socket listens at a path, also after somebody has removed the file there, as those do who clean up /run.
type socket struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex // guards what follows
	ln     *net.UnixListener
	closed bool
}

// openSocket listens at a path where nothing is.
func openSocket(path string, log *slog.Logger) (*socket, error) {
	ln, err := listenUnix(path)
	if err != nil {
		return nil, err
	}
	return &socket{path: path, log: log, ln: ln}, nil
}

func listenUnix(path string) (*net.UnixListener, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // who calls is asked of the kernel
		return nil, errors.Join(fmt.Errorf("open socket to users: %w", err), ln.Close())
	}
	return ln, nil
}

func (s *socket) current() *net.UnixListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ln
}

// Accept waits for the next connection.
func (s *socket) Accept() (net.Conn, error) {
	for {
		ln := s.current()
		if err := ln.SetDeadline(time.Now().Add(socketLook)); err != nil {
			return nil, err
		}
		conn, err := ln.AcceptUnix()
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
		s.again()
	}
}

// again listens anew where the file is gone. Another's socket there is left to it.
func (s *socket) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Lstat(s.path); s.closed || !errors.Is(err, os.ErrNotExist) {
		return
	}
	err := os.MkdirAll(filepath.Dir(s.path), 0o755)
	var ln *net.UnixListener
	if err == nil {
		ln, err = listenUnix(s.path)
	}
	if err != nil {
		s.log.Error("the socket is gone, and cannot be made anew; it is tried again", "socket", s.path, "error", err)
		return
	}
	s.ln.SetUnlinkOnClose(false) // the file is the new one's
	_ = s.ln.Close()             // nobody reaches it any more
	s.ln = ln
	s.log.Warn("somebody removed the socket; it is there again", "socket", s.path)
}

// Close stops listening.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.ln.Close()
}

// Addr is the path.
func (s *socket) Addr() net.Addr { return s.current().Addr() }

// listenHint is what to do where the address of a setting cannot be listened at.
func listenHint(setting string, err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "mend the look-up of names on this machine, or give `" + setting + "` an IP address in the configuration, as 192.0.2.1:PORT"
	}
	return "change `" + setting + "` in the configuration, or stop what uses it"
}

// listenAt opens the unix socket and, if there is one, the TCP address of a controller.
func listenAt(c site.Config, log *slog.Logger) ([]net.Listener, error) {
	path := c.SocketPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make socket directory: %w", err)
	}
	if err := unanswered(path); err != nil { // else it is left over
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	socket, err := openSocket(path, log)
	if err != nil {
		return nil, err
	}
	if c.Listen == "" {
		return []net.Listener{socket}, nil
	}
	tcp, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w (%s)", err, listenHint("listen", err)), socket.Close())
	}
	return []net.Listener{socket, tcp}, nil
}

// unanswered says where another program answers at a socket. The store's lock keeps others from this directory alone.
func unanswered(path string) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil
	}
	return errors.Join(fmt.Errorf("another program answers at %s (%s)", path, listenHint("socket", nil)), conn.Close())
}
