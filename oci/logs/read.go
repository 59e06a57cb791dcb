package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Log reads the output of a container, during its life and after it. It is
// used by one goroutine at a time; any number of readers may be open.
type Log struct {
	whole *Whole // nil: it is in dir
	dir   string
	later bool        // there is no directory yet, nor if there was no output
	ended func() bool // its writer is done
	file  *os.File    // nil: none is open, or it is gone and its sums are there
	sums  *os.File    // of file; nil: it has none
	start int64       // offset of file's first byte

	// Copy says that it is the copy of a log of another machine, where bytes may have
	// been lost, too.
	Copy bool
}

// Chunk is a piece of output.
type Chunk struct {
	Offset  int64 // of Data's first byte in the whole output
	Data    []byte
	Dropped int64 // bytes just before Offset that are not kept
	Damaged int64 // those of them that the disk has changed, or lost

	copied bool
}

// maxChunk bounds one read.
const maxChunk = 64 << 10

// followEvery is how often a follower looks for more.
const followEvery = 50 * time.Millisecond

// Open opens the log in dir. Ended says whether its writer is done.
func Open(dir string, ended func() bool) (*Log, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &Log{dir: dir, ended: ended}, nil
}

// OpenLater opens a log whose directory may be missing, as one by NewLater.
func OpenLater(dir string, ended func() bool) *Log { return &Log{dir: dir, later: true, ended: ended} }

// segments are the log's own.
func (l *Log) segments() ([]int64, error) {
	list, err := segments(l.dir)
	if l.later && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

// Ended says that the log's writer is done.
func (l *Log) Ended() bool { return l.ended() }

// Close frees the reader's files.
func (l *Log) Close() error {
	var err error
	for _, f := range []*os.File{l.file, l.sums} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	l.file, l.sums = nil, nil
	return err
}

// End returns the offset behind the last byte that was written.
func (l *Log) End() (int64, error) {
	if l.whole != nil {
		return l.whole.end(), nil
	}
	offs, err := l.segments()
	if err != nil || len(offs) == 0 {
		return 0, err
	}
	last := offs[len(offs)-1]
	size, err := length(l.dir, last)
	if err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return last + size, nil
}

// fromStart is an offset that may count back from the end.
func (l *Log) fromStart(off int64) (int64, error) {
	if off >= 0 {
		return off, nil
	}
	end, err := l.End()
	return max(0, end+off), err
}

// ReadAt returns the output at off, at most 64 KiB. Where it is not kept, or damaged, the
// chunk begins at the next byte that is whole, or at the end, and says how many are missing. io.EOF
// means that nothing is there yet: the end, or the end so far (see Next). A
// negative off counts back from the end.
func (l *Log) ReadAt(off int64) (Chunk, error) {
	off, err := l.fromStart(off)
	if err != nil {
		return Chunk{}, err
	}
	for range logSegments + 2 {
		c, err := l.readOnce(off)
		if !errors.Is(err, errMoved) {
			return c, err
		}
	}
	return Chunk{}, errors.New("read log: output is rotated faster than it can be read; start nearer to the end")
}

// errMoved says that rotation took the file away between two steps.
var errMoved = errors.New("log rotated")

func (l *Log) readOnce(off int64) (Chunk, error) {
	if l.whole != nil {
		c, err := l.whole.readAt(off)
		c.copied = l.Copy
		return c, err
	}
	offs, err := l.segments()
	if err != nil {
		return Chunk{}, err
	}
	i := max(0, len(offs)-1)
	for i > 0 && offs[i] > off {
		i--
	}
	c := Chunk{Offset: off, copied: l.Copy}
	for _, start := range offs[i:] {
		if start > c.Offset {
			c.Dropped += start - c.Offset
			c.Offset = start
		}
		if err := l.open(start); err != nil {
			return Chunk{}, err
		}
		data, bad := l.read(c.Offset - start)
		c.Offset, c.Dropped, c.Damaged = c.Offset+bad, c.Dropped+bad, c.Damaged+bad
		if len(data) > 0 {
			c.Data = data
			return c, nil
		}
	}
	if c.Damaged > 0 {
		return c, nil
	}
	return Chunk{}, io.EOF
}

// open opens the file that begins at start, and its sums. Sums whose file is gone say how much
// the disk has lost; rotation removes them first.
func (l *Log) open(start int64) error {
	if (l.file != nil || l.sums != nil) && l.start == start {
		return l.openSums()
	}
	f, err := openFile(filepath.Join(l.dir, segmentName(start)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read log: %w", err)
	}
	l.Close()
	l.file, l.start = f, start
	if gone := err != nil; gone {
		l.file = nil
		if err := l.openSums(); err != nil || l.sums == nil {
			return errors.Join(errMoved, err)
		}
	}
	return l.openSums()
}

// openFile opens a file to read it. It waits for nobody, as where a named pipe is in its place, which cannot be read then.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// openSums opens the sums of the open file if they are there by now.
func (l *Log) openSums() error {
	if l.sums != nil {
		return nil
	}
	f, err := openFile(filepath.Join(l.dir, sumName(l.start)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	l.sums = f
	return nil
}

// Next is ReadAt that waits for output. It returns io.EOF once the container
// has ended and all of its output was read.
func (l *Log) Next(ctx context.Context, off int64) (Chunk, error) {
	off, err := l.fromStart(off)
	if err != nil {
		return Chunk{}, err
	}
	timer := time.NewTimer(followEvery)
	defer timer.Stop()
	for {
		// Look for the end before the read: what is written up to then is seen.
		ended := l.ended()
		c, err := l.ReadAt(off)
		if !errors.Is(err, io.EOF) || ended {
			return c, err
		}
		select {
		case <-ctx.Done():
			return Chunk{}, ctx.Err()
		case <-timer.C:
			timer.Reset(followEvery)
		}
	}
}

// Notice is the line that stands for bytes that were dropped or are damaged.
func (c Chunk) Notice() string {
	text := ""
	if n := c.Dropped - c.Damaged; n > 0 && c.copied {
		text = fmt.Sprintf("\n[gbatch: %d bytes of output are not kept: the log's size limit was reached, or they were damaged on the node]\n", n)
	} else if n > 0 {
		text = fmt.Sprintf("\n[gbatch: %d bytes of output are not kept: the log's size limit was reached]\n", n)
	}
	if c.Damaged > 0 {
		text += fmt.Sprintf("\n[gbatch: %d bytes of output are damaged on the disk and left out]\n", c.Damaged)
	}
	return text
}
