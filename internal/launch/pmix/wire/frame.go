package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Frame is one message. The answer to a request has its tag.
type Frame struct {
	Tag  uint32
	Body []byte
}

// headBytes is the length of what is before each message: a number that means
// nothing here, the tag, the length, and four bytes of nothing.
const headBytes = 16

// ReadFrame reads the next message of at most so many bytes.
func ReadFrame(from io.Reader, most uint32) (Frame, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{Tag: binary.BigEndian.Uint32(head[4:])}
	n := binary.BigEndian.Uint32(head[8:])
	if n > most {
		return Frame{}, fmt.Errorf("a message of %d bytes is more than %d", n, most)
	}
	return f, f.fill(from, n)
}

// fill reads the body as it comes: what is only announced takes no memory.
func (f *Frame) fill(from io.Reader, n uint32) error {
	const step = 64 << 10
	for uint32(len(f.Body)) < n {
		have := len(f.Body)
		f.Body = append(f.Body, make([]byte, min(step, n-uint32(have)))...)
		if _, err := io.ReadFull(from, f.Body[have:]); err != nil {
			return err
		}
	}
	return nil
}

// Append appends a message, for the connection that has an index.
func (f Frame) Append(to []byte, index uint32) []byte {
	to = binary.BigEndian.AppendUint32(to, index)
	to = binary.BigEndian.AppendUint32(to, f.Tag)
	to = binary.BigEndian.AppendUint32(to, uint32(len(f.Body)))
	to = binary.BigEndian.AppendUint32(to, 0)
	return append(to, f.Body...)
}
