// Package logs keeps the output of one container in files of bounded size, and
// reads it again by offset or time. It knows no container: who writes owns the
// directory, and readers are told by their opener whether the writer is done.
package logs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The output is kept in segments, files named by the offset of their first
// byte in the whole output: 00000000000000000000.log and so on. The first
// segment is kept for ever, of the others only the newest, so that the log's
// size is bounded and both its beginning and its end survive. Offsets never
// change, and a hole between two segments is output that was dropped.

// Limits bounds what is kept of a container's output.
type Limits struct {
	// MaxBytes bounds the log's files together; 0 is 256 MiB. A sixth
	// of it holds the beginning, the rest the end.
	MaxBytes int64 `json:"max_bytes,omitempty"`
}

// defaultBytes is the size of the log when none is given, MinBytes the
// smallest that can be asked for.
const (
	defaultBytes = 256 << 20
	MinBytes     = 6 * 4096
	logSegments  = 6
)

func (l Limits) segmentBytes() int64 {
	if l.MaxBytes == 0 {
		l.MaxBytes = defaultBytes
	}
	return max(l.MaxBytes, MinBytes) / logSegments
}

// Writer appends to the log of one container. It has one owner.
type Writer struct {
	dir     string
	segment int64 // most bytes per file
	Written int64 // offset of the next byte
	left    int64 // room in the open file
	file    *os.File
	tail    []int64 // offsets of the files that may be dropped, oldest first
	marks   marks
	now     func() time.Time
}

// NewWriter begins a log in dir, which is there and empty.
func NewWriter(dir string, limits Limits) (*Writer, error) {
	w := &Writer{dir: dir, segment: limits.segmentBytes(), now: time.Now, marks: marks{path: filepath.Join(dir, fileTimes)}}
	return w, w.rotate()
}

func segmentName(off int64) string { return fmt.Sprintf("%020d.log", off) }

// Write keeps all of p. It fails when the disk does; what was not written is
// then counted as a hole, so that later output keeps its offset.
func (w *Writer) Write(p []byte) (int, error) {
	total := len(p)
	w.marks.at(w.Written, w.now())
	for len(p) > 0 {
		if w.left == 0 {
			if err := w.rotate(); err != nil {
				w.Written += int64(len(p))
				return total - len(p), err
			}
		}
		n, err := w.file.Write(p[:min(int64(len(p)), w.left)])
		w.Written += int64(n)
		w.left -= int64(n)
		p = p[n:]
		if err != nil {
			// The file may end short: start the next one at the right offset.
			w.Written += int64(len(p))
			w.left = 0
			return total - len(p), fmt.Errorf("write log: %w", err)
		}
	}
	return total, nil
}

// rotate starts the next file and drops the oldest but the first.
func (w *Writer) rotate() error {
	f, err := os.OpenFile(filepath.Join(w.dir, segmentName(w.Written)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	if w.file != nil {
		w.file.Close()
		w.tail = append(w.tail, w.Written)
	}
	w.file, w.left = f, w.segment
	for len(w.tail) > logSegments-1 {
		if err := os.Remove(filepath.Join(w.dir, segmentName(w.tail[0]))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("write log: %w", err)
		}
		w.tail = w.tail[1:]
	}
	return nil
}

func (w *Writer) Close() error {
	w.marks.close()
	return w.file.Close()
}

// segments lists the offsets of the log's files, ascending.
func segments(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	var out []int64
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), ".log")
		off, err := strconv.ParseInt(digits, 10, 64)
		if ok && err == nil && off >= 0 {
			out = append(out, off)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Pump copies a container's output into its log until every process that
// could write has ended. A log that cannot be written loses output, as a full
// disk must not stop the job; the first error is returned at the end.
func Pump(w io.Writer, r io.Reader) error {
	buf := make([]byte, 64<<10)
	var first error
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil && first == nil {
				first = werr
			}
		}
		if err != nil {
			return first
		}
	}
}
