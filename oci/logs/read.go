package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Log reads the output of a container, during its life and after it. It is
// used by one goroutine at a time; any number of readers may be open.
type Log struct {
	dir   string
	ended func() bool // its writer is done
	file  *os.File
	start int64 // offset of file's first byte
}

// Chunk is a piece of output.
type Chunk struct {
	Offset  int64 // of Data's first byte in the whole output
	Data    []byte
	Dropped int64 // bytes just before Offset that are not kept
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

// Ended says that the log's writer is done.
func (l *Log) Ended() bool { return l.ended() }

// Close frees the reader's file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// End returns the offset behind the last byte that was written.
func (l *Log) End() (int64, error) {
	offs, err := segments(l.dir)
	if err != nil || len(offs) == 0 {
		return 0, err
	}
	last := offs[len(offs)-1]
	st, err := os.Stat(filepath.Join(l.dir, segmentName(last)))
	if err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return last + st.Size(), nil
}

// fromStart is an offset that may count back from the end.
func (l *Log) fromStart(off int64) (int64, error) {
	if off >= 0 {
		return off, nil
	}
	end, err := l.End()
	return max(0, end+off), err
}

// ReadAt returns the output at off, at most 64 KiB. Where it is not kept, the
// chunk begins at the next byte that is and says how many are missing. io.EOF
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
	offs, err := segments(l.dir)
	if err != nil {
		return Chunk{}, err
	}
	i := len(offs) - 1
	for i >= 0 && offs[i] > off {
		i--
	}
	if i < 0 {
		return Chunk{}, io.EOF
	}
	n, buf := 0, make([]byte, maxChunk)
	if n, err = l.readFile(offs[i], off, buf); err != nil {
		return Chunk{}, err
	}
	if n > 0 {
		return Chunk{Offset: off, Data: buf[:n]}, nil
	}
	if i == len(offs)-1 {
		return Chunk{}, io.EOF
	}
	next := offs[i+1]
	if n, err = l.readFile(next, next, buf); err != nil {
		return Chunk{}, err
	}
	if n == 0 {
		return Chunk{}, io.EOF
	}
	return Chunk{Offset: next, Data: buf[:n], Dropped: next - off}, nil
}

// readFile reads at the offset off of the output from the file that starts at start.
func (l *Log) readFile(start, off int64, buf []byte) (int, error) {
	if l.file == nil || l.start != start {
		f, err := os.Open(filepath.Join(l.dir, segmentName(start)))
		if errors.Is(err, os.ErrNotExist) {
			return 0, errMoved
		}
		if err != nil {
			return 0, fmt.Errorf("read log: %w", err)
		}
		l.Close()
		l.file, l.start = f, start
	}
	n, err := l.file.ReadAt(buf, off-start)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return n, nil
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

// Notice is the line that stands for bytes that were dropped.
func (c Chunk) Notice() string {
	if c.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("\n[gbatch: %d bytes of output are not kept: the log's size limit was reached]\n", c.Dropped)
}
