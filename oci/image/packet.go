package image

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sendPacket sends a packet, and with it what a connection or file refers to,
// if there is one.
func sendPacket(to *net.UnixConn, p packet, with syscall.Conn) error {
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

// receivePacket returns the next packet, and what came with it or nil.
func receivePacket(from *net.UnixConn) (packet, *os.File, error) {
	var p packet
	raw, oob := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(4*4))
	n, m, flags, _, err := from.ReadMsgUnix(raw, oob)
	if err != nil {
		return p, nil, err
	}
	if n == 0 {
		return p, nil, io.EOF
	}
	file := firstFile(oob[:m])
	if flags&unix.MSG_TRUNC != 0 {
		err = errors.New("a packet is too long")
	} else {
		err = json.Unmarshal(raw[:n], &p)
	}
	if err != nil && file != nil {
		file.Close()
		file = nil
	}
	return p, file, err
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

// fileConn makes a connection of a file, which it closes.
func fileConn(f *os.File) (net.Conn, error) {
	defer f.Close()
	return net.FileConn(f)
}

// socketpair returns both ends of a connection.
func socketpair(kind int) (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "worker")
	c, err := fileConn(os.NewFile(uintptr(fds[0]), "store"))
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return c.(*net.UnixConn), theirs, nil
}
