// Package keeper is the first process of a container that several programs run in,
// one after the other: it begins each at its shim's word, waits for it, ends all that
// it left behind, and says how it ended. It is in the container and has no more rights
// there than the programs, so its shim believes it nothing that matters to others.
package keeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Arg is the argument by which the program in a container is told to be a keeper, and ArgInit
// to be one of a single program, whose environment it has. Its
// own file and the socket of its shim are the first files after standard error.
const (
	Arg       = "keep"
	ArgInit   = "init"
	FdProgram = 3
	FdSocket  = 4
)

// Order is a program to begin. With it come its standard input, output and errors.
type Order struct {
	Args, Env []string
	Dir       string
}

// Word is what became of it: first whether it began, then how it ended. With the first
// comes a handle of its process, by which the host knows it.
type Word struct {
	Failure string // it did not begin: one of those below
	Text    string // the error, for the log

	Status uint32 // as wait says it
	// Left says that it left something behind that goes only with the container.
	Left bool
}

// Why a program did not begin.
const (
	NoDir      = "dir"       // its directory cannot be entered
	NotFound   = "not found" // there is none by this name
	NotRunable = "not runable"
	Refused    = "refused" // anything else
)

// MaxOrder bounds one message. What the kernel takes at execve is less.
const MaxOrder = 4 << 20

// Message is an order or a word.
type Message interface {
	pack() []byte
	unpack(body []byte) error
}

// Send writes a message, and the files that go with it.
func Send(socket int, message Message, files ...int) error {
	body := message.pack()
	if len(body) > MaxOrder {
		return fmt.Errorf("message has %d bytes, at most %d are taken", len(body), MaxOrder)
	}
	data := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	var oob []byte
	if len(files) > 0 {
		oob = unix.UnixRights(files...)
	}
	for len(data) > 0 {
		n, err := unix.SendmsgN(socket, data, oob, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		data, oob = data[n:], nil
	}
	return nil
}

// maxFiles bounds the files that come with a message.
const maxFiles = 4

// Receive reads a message, and the files that came with it, which are the caller's.
func Receive(socket int, message Message) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			files = nil
		}
	}()
	head := make([]byte, 4)
	if files, err = fill(socket, head, nil); err != nil {
		return files, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > MaxOrder {
		return files, fmt.Errorf("message of %d bytes, at most %d are taken", size, MaxOrder)
	}
	body := make([]byte, size)
	if files, err = fill(socket, body, files); err != nil {
		return files, err
	}
	return files, message.unpack(body)
}

// fill reads until buf is full.
func fill(socket int, buf []byte, files []*os.File) ([]*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	for len(buf) > 0 {
		n, oobn, _, _, err := unix.Recvmsg(socket, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return files, err
		}
		more, err := filesOf(oob[:oobn])
		files = append(files, more...)
		if err == nil && len(files) > maxFiles {
			err = errors.New("too many files came with a message")
		}
		if err != nil {
			return files, err
		}
		if n == 0 {
			return files, io.EOF
		}
		buf = buf[n:]
	}
	return files, nil
}

func filesOf(oob []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}
