// Package socket carries JSON between two processes of this machine, in packets
// that may have a file or a connection with them. It does not know what they
// say. Connections and files belong to who made or received them.
package socket

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxPacket bounds packets; who sends a stranger's words cuts them to fit.
const maxPacket = 16 << 10

// Send sends a packet, and with it what a connection or file refers to,
// if there is one.
func Send(to *net.UnixConn, p any, with syscall.Conn) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if with == nil {
		_, _, err = to.WriteMsgUnix(raw, nil, nil)
		return err
	}
	sc, err := with.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = sc.Control(func(fd uintptr) { _, _, sent = to.WriteMsgUnix(raw, unix.UnixRights(int(fd)), nil) })
	return errors.Join(err, sent)
}

// Receive reads the next packet into p, and returns what came with it or nil.
func Receive(from *net.UnixConn, p any) (*os.File, error) {
	raw, oob := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(4*4))
	n, m, flags, _, err := from.ReadMsgUnix(raw, oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	file := firstFile(oob[:m])
	if flags&unix.MSG_TRUNC != 0 {
		err = errors.New("a packet is too long")
	} else {
		err = json.Unmarshal(raw[:n], p)
	}
	if err != nil && file != nil {
		file.Close()
		file = nil
	}
	return file, err
}

// firstFile returns the first file that came with a packet; there should be no
// more, and they are closed.
func firstFile(oob []byte) *os.File {
	var first *os.File
	messages, _ := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			if first != nil {
				unix.Close(fd)
				continue
			}
			first = os.NewFile(uintptr(fd), "received")
		}
	}
	return first
}

// Conn makes a connection of a file, which it closes.
func Conn(f *os.File) (net.Conn, error) {
	defer f.Close()
	return net.FileConn(f)
}

// Pair returns both ends of a connection, one as a file for another process.
func Pair(kind int) (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "theirs")
	c, err := Conn(os.NewFile(uintptr(fds[0]), "ours"))
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return c.(*net.UnixConn), theirs, nil
}
