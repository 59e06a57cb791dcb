// Package door is the control socket of a shim: whoever connects to it is handed to the program
// that runs then, as a shim may run several, one after the other. It knows nothing of
// what is said.
package door

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// File is the socket's name in the directory of a container.
const File = "sock"

// Door is a socket in what was the working directory when it was opened.
type Door struct {
	l    *net.UnixListener
	path string

	mu    sync.Mutex
	enter func(*net.UnixConn) // nil: nobody is in
}

// Open opens the socket, for connections that go to enter, which may keep its caller
// as long as it likes.
func Open(enter func(*net.UnixConn)) (*Door, error) {
	// A relative name: the directory's own may be longer than a socket's may.
	path, err := filepath.Abs(File)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: File, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // the working directory may be another one by then
	d := &Door{l: l, path: path, enter: enter}
	go func() { // ends with the listener
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			d.admit(conn)
		}
	}()
	return d, nil
}

func (d *Door) admit(conn *net.UnixConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.enter == nil {
		conn.Close()
		return
	}
	d.enter(conn)
}

// Turn has connections go to another program from now on; nil: they are closed.
func (d *Door) Turn(enter func(*net.UnixConn)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enter = enter
}

// Close ends it, and removes its file.
func (d *Door) Close() {
	d.l.Close()
	os.Remove(d.path)
}

// Dial connects to the socket in a directory. The path of a socket may have only
// 107 bytes, so it is named through an open handle on the directory.
func Dial(dir string) (*net.UnixConn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	name := filepath.Join("/proc/self/fd", strconv.Itoa(int(d.Fd())), File)
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("reach the shim of %s: %w", filepath.Base(dir), err)
	}
	return conn, nil
}
