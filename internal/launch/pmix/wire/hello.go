package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Hello is the first message of a connection: who wants to be served, and how it
// speaks.
type Hello struct {
	Kind    byte // Client, or a tool of some kind
	Proc    Proc // of a client
	Version Version
	Format  string // its name
	Buffers byte   // Plain, or another type
}

// Client is the kind of a program that a server was asked to start.
const Client = 0

// maxHello bounds the first message.
const maxHello = 16 << 10

// ReadHello reads the first message. Unlike all others its length is in the order
// of the machine's bytes.
func ReadHello(from io.Reader) (Hello, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return Hello{}, err
	}
	n := binary.NativeEndian.Uint32(head[8:])
	if n > maxHello {
		return Hello{}, fmt.Errorf("the first message of %d bytes is more than %d", n, maxHello)
	}
	var f Frame
	if err := f.fill(from, n); err != nil {
		return Hello{}, err
	}
	return parseHello(f.Body)
}

func parseHello(b []byte) (h Hello, err error) {
	l := letter{rest: b}
	_ = l.text()            // how the client means to show who its user is
	l.take(int(l.number())) // what it says of that, which proves nothing
	h.Kind = l.byte()
	if h.Kind == Client {
		h.Proc = Proc{l.text(), l.number()}
		h.Version = parseVersion(l.text())
		h.Format, h.Buffers = l.text(), l.byte()
	}
	if l.short {
		return h, errors.New("the first message ends too early")
	}
	return h, nil
}

// letter reads the parts of a first message.
type letter struct {
	rest  []byte
	short bool
}

func (l *letter) take(n int) []byte {
	if n < 0 || n > len(l.rest) {
		l.short, l.rest = true, nil
		return nil
	}
	b := l.rest[:n]
	l.rest = l.rest[n:]
	return b
}

func (l *letter) text() string {
	b := l.take(bytes.IndexByte(l.rest, 0) + 1)
	if len(b) == 0 {
		l.short = true
		return ""
	}
	return string(b[:len(b)-1])
}

func (l *letter) byte() byte {
	b := l.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

func (l *letter) number() uint32 {
	b := l.take(4)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// Welcome is what a client is told that is let in: that, and its index.
func Welcome(index uint32) []byte {
	return binary.BigEndian.AppendUint32(Refuse(OK), index)
}

// Refuse is what one is told that is not.
func Refuse(why Status) []byte { return binary.BigEndian.AppendUint32(nil, uint32(why)) }

// Version is that of a client's library.
type Version struct{ Major, Minor, Release int }

// parseVersion reads 4.2.2 and 3.1.5rc1. What is not there is 0.
func parseVersion(s string) (v Version) {
	for k, to := range []*int{&v.Major, &v.Minor, &v.Release} {
		parts := strings.SplitN(strings.TrimPrefix(s, "v"), ".", 3)
		if k < len(parts) {
			digits := parts[k][:len(parts[k])-len(strings.TrimLeft(parts[k], "0123456789"))]
			*to, _ = strconv.Atoi(digits)
		}
	}
	return v
}

// Before tells whether it is an earlier one.
func (v Version) Before(o Version) bool {
	if v.Major != o.Major {
		return v.Major < o.Major
	}
	if v.Minor != o.Minor {
		return v.Minor < o.Minor
	}
	return v.Release < o.Release
}
