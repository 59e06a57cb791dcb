package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/failure"
)

// The shim and its clients exchange JSON objects, one per line, over a unix
// stream socket. A client sends requests and the shim answers each by its
// sequence number; a message with number 0 tells of a new phase, and the first
// one on each connection tells the present one. Either side ignores fields
// that it does not know, so a new daemon can talk to the shims of an old one.
const protocolVersion = 1

type request struct {
	Version int             `json:"v"`
	Seq     uint64          `json:"seq"`
	Op      string          `json:"op"`
	Signal  int             `json:"signal,omitempty"`
	Limits  *cgroups.Limits `json:"limits,omitempty"`
	Exec    *ExecRequest    `json:"exec,omitempty"`
}

// The operations. opExec comes alone, on a connection of its own.
const (
	opSignal = "signal" // to whoever handles it, see package signals
	opStop   = "stop"   // as signal, and the container counts as stopped
	opKill   = "kill"
	opPause  = "pause"
	opResume = "resume"
	opUpdate = "update"
	opExec   = "exec"
	opAttach = "attach" // answered with the terminal, or with nothing if there is none
)

type reply struct {
	Version int    `json:"v"`
	Seq     uint64 `json:"seq"`
	Phase   Phase  `json:"phase,omitempty"`
	PID     int    `json:"pid,omitempty"`  // of the container's or command's first process
	Part    string `json:"part,omitempty"` // which runs, where that is not the last; see Part
	Error   string `json:"error,omitempty"`
	Exited  bool   `json:"exited,omitempty"` // a command ended with Code
	Code    int    `json:"code,omitempty"`

	Kind failure.Kind `json:"kind,omitempty"` // with Error: a Failure
}

// Phase is how far a container has come.
type Phase string

// The phases, in their order.
const (
	PhaseStarting Phase = "starting" // until the user's code runs
	PhaseRunning  Phase = "running"
	PhaseExited   Phase = "exited" // the result is recorded
)

// writeTimeout bounds how long a peer that does not read can hold us up.
const writeTimeout = 2 * time.Second

func send(conn *net.UnixConn, v any, files ...*os.File) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
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

// maxMessage bounds one line, maxFiles the open files that come with it.
const (
	maxMessage = 1 << 20
	maxFiles   = 8
)

// messageReader reads lines, and the open files that were sent with them.
type messageReader struct {
	conn  *net.UnixConn
	buf   []byte
	files []*os.File
}

func newMessageReader(conn *net.UnixConn) *messageReader { return &messageReader{conn: conn} }

// next returns one line without its end. The files belong to the caller.
func (r *messageReader) next() ([]byte, []*os.File, error) {
	for {
		if i := bytes.IndexByte(r.buf, '\n'); i >= 0 {
			line, files := r.buf[:i], r.files
			r.buf, r.files = r.buf[i+1:], nil
			return line, files, nil
		}
		err := errors.New("message is too long")
		if len(r.buf) <= maxMessage {
			err = r.fill()
		}
		if err != nil {
			closeAll(r.files)
			r.files = nil
			return nil, nil, err
		}
	}
}

func (r *messageReader) fill() error {
	data, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, _, _, err := r.conn.ReadMsgUnix(data, oob)
	if err != nil {
		return err
	}
	if n == 0 && oobn == 0 {
		return io.EOF
	}
	r.buf = append(r.buf, data[:n]...)
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
	if len(r.files) > maxFiles {
		return fmt.Errorf("message has %d open files, at most %d are taken", len(r.files), maxFiles)
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// dialShim connects to the socket in dir. The path of a socket may have only
// 107 bytes, so it is named through an open handle on the directory.
func dialShim(dir string) (*net.UnixConn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	name := filepath.Join("/proc/self/fd", strconv.Itoa(int(d.Fd())), fileSocket)
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("reach the shim of %s: %w", filepath.Base(dir), err)
	}
	return conn, nil
}
