// Package message is lines of JSON over a unix stream socket, with open files. It knows
// nothing of what they say.
package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// writeTimeout bounds how long a peer that does not read can hold us up.
const writeTimeout = 2 * time.Second

// Send writes one line, with files. A peer that does not read holds it up for 2 seconds at most.
func Send(conn *net.UnixConn, v any, files ...*os.File) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return SendText(conn, data, files...)
}

// SendText is Send for what is JSON already, and the callee's.
func SendText(conn *net.UnixConn, data []byte, files ...*os.File) (err error) {
	if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	data = append(data, '\n')
	if len(files) == 0 {
		_, err = conn.Write(data)
		return err
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	// The files go with the first byte; the rest may need further writes.
	n, _, err := conn.WriteMsgUnix(data, unix.UnixRights(fds...), nil)
	if err == nil && n < len(data) {
		_, err = conn.Write(data[n:])
	}
	return err
}

// MaxLine bounds one line, MaxFiles the open files that come with it.
const (
	MaxLine  = 1 << 20
	MaxFiles = 8
)

// Reader reads lines, and the open files that were sent with them.
type Reader struct {
	conn  *net.UnixConn
	buf   []byte
	files []*os.File
}

// NewReader reads from a connection.
func NewReader(conn *net.UnixConn) *Reader { return &Reader{conn: conn} }

// Next returns one line without its end. The files belong to the caller.
func (r *Reader) Next() ([]byte, []*os.File, error) {
	for {
		if i := bytes.IndexByte(r.buf, '\n'); i >= 0 {
			line, files := r.buf[:i], r.files
			r.buf, r.files = r.buf[i+1:], nil
			return line, files, nil
		}
		err := errors.New("message is too long")
		if len(r.buf) <= MaxLine {
			err = r.fill()
		}
		if err != nil {
			CloseAll(r.files)
			r.files = nil
			return nil, nil, err
		}
	}
}

func (r *Reader) fill() error {
	r.buf = slices.Grow(r.buf, 4096)
	end := len(r.buf)
	oob := make([]byte, unix.CmsgSpace(4*MaxFiles))
	n, oobn, _, _, err := r.conn.ReadMsgUnix(r.buf[end:end+4096], oob)
	if err != nil {
		return err
	}
	if n == 0 && oobn == 0 {
		return io.EOF
	}
	r.buf = r.buf[:end+n]
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return err
	}
	for _, m := range msgs {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			r.files = append(r.files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	if len(r.files) > MaxFiles {
		return fmt.Errorf("message has %d open files, at most %d are taken", len(r.files), MaxFiles)
	}
	return nil
}

// CloseAll closes files.
func CloseAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Pair is two ends of a connection: one of this process's, and one to hand over.
func Pair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make control socket: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	defer ours.Close()
	theirs := os.NewFile(uintptr(fds[1]), "control")
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make control socket: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}
