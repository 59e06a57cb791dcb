package logs

import (
	"context"
	"errors"
	"io"
	"time"
)

// Selection is which part of a log is read: from Offset on, or from what was
// written at Since or later, or the last Tail lines; with Follow also what
// comes, until the end.
type Selection struct {
	Offset int64
	Since  time.Time // zero: see Offset
	Tail   int64     // 0: see Since
	Follow bool
}

// Body is a part of a log as bytes to be read, with a line in place of bytes
// that are not kept. It belongs to one reader: one that is slow holds up
// nothing but itself.
type Body struct {
	ctx   context.Context // of the reader; there is no other way to get it into Read
	log   *Log
	sel   Selection
	start int64
	off   int64  // of the next byte
	rest  []byte // read and not given yet
}

// Body begins to read, and owns the log from then on. The context ends what follows.
func (l *Log) Body(ctx context.Context, sel Selection) (*Body, error) {
	b := &Body{ctx: ctx, log: l, sel: sel, off: sel.Offset}
	err := b.find()
	if err == nil {
		b.start = b.off
		var c Chunk
		if c, err = l.ReadAt(b.off); err == nil {
			b.take(c)
			b.start = c.Offset - int64(len(c.Notice()))
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return b, nil
}

func (b *Body) find() (err error) {
	if !b.sel.Since.IsZero() {
		if b.off, err = b.log.since(b.sel.Since); err != nil {
			return err
		}
	}
	if b.sel.Tail > 0 {
		b.off, err = b.log.lastLines(b.sel.Tail)
	}
	return err
}

// Start is the offset that a reader shall count bytes from. The line for bytes
// that are not kept is not among the log's bytes.
func (b *Body) Start() int64 { return b.start }

func (b *Body) take(c Chunk) {
	b.off = c.Offset + int64(len(c.Data))
	b.rest = append([]byte(c.Notice()), c.Data...)
}

// Read gives the next bytes. Where bytes are missing that a follower would take
// for read, it ends: whoever counts shall ask again, and hear anew where it is.
func (b *Body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		c, err := b.next()
		if err != nil {
			return 0, err
		}
		b.take(c)
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *Body) next() (Chunk, error) {
	if !b.sel.Follow {
		return b.log.ReadAt(b.off)
	}
	c, err := b.log.Next(b.ctx, b.off)
	if err == nil && c.Dropped > 0 {
		return c, io.EOF
	}
	return c, err
}

// Close frees the log.
func (b *Body) Close() error { return b.log.Close() }

// tailBlock is how much is read at a time to find the last lines.
const tailBlock = 64 << 10

// lastLines returns the offset at which the last n lines begin. A last line
// without its end counts as one.
func (l *Log) lastLines(n int64) (int64, error) {
	end, err := l.End()
	if err != nil {
		return 0, err
	}
	seen := int64(-1) // the newline that ends the last line begins none
	for at := end; at > 0; {
		from := max(0, at-tailBlock)
		block, damaged, err := l.between(from, at)
		if err != nil {
			return 0, err
		}
		if at == end && len(block) > 0 && block[len(block)-1] != '\n' {
			seen++
		}
		for i := len(block) - 1; i >= 0; i-- {
			if block[i] != '\n' {
				continue
			}
			if seen++; seen == n {
				return at - int64(len(block)-i) + 1, nil
			}
		}
		if int64(len(block)) < at-from {
			return at - int64(len(block)) - damaged, nil // what was before is not kept
		}
		at = from
	}
	return 0, nil
}

// Block reads the kept bytes that end at offset to and begin at from or later.
func (l *Log) Block(from, to int64) ([]byte, error) {
	block, _, err := l.between(from, to)
	return block, err
}

// between is Block, and says how many bytes before the block are damaged.
func (l *Log) between(from, to int64) (block []byte, damaged int64, err error) {
	for from < to {
		c, err := l.ReadAt(from)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if c.Dropped > 0 {
			block, damaged = block[:0], min(c.Damaged, max(0, to-from))
		}
		from = c.Offset + int64(len(c.Data))
		block = append(block, c.Data...)
		if from > to {
			block = block[:max(0, int64(len(block))-(from-to))]
		}
	}
	return block, damaged, nil
}
