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
	"sync"
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
	room    string // a directory that becomes dir at the first output; empty: dir is there
	segment int64  // most bytes per file
	Output  int64  // what was to be written, whether it is kept or not
	written int64  // offset of the next byte
	lost    lost
	exact   bool  // its bytes are another log's: it has no marks of its own
	left    int64 // room in the open file
	file    *os.File
	sums    sums
	tail    []int64 // offsets of the files that may be dropped, oldest first
	marks   marks
	now     func() time.Time
}

// NewWriter begins a log in dir, which is there and empty.
func NewWriter(dir string, limits Limits) (*Writer, error) {
	w := &Writer{dir: dir, segment: limits.segmentBytes(), now: time.Now, marks: marks{path: filepath.Join(dir, fileTimes)}}
	if err := w.rotate(); err != nil {
		return nil, err
	}
	w.lost.reserve(dir)
	return w, nil
}

// NewLater is NewWriter for a log whose directory is there when there is output: what runs for a
// moment and says nothing costs no file. Room is a directory that MakeRoom made, so that a full disk
// does as little to this log as to others; who made it makes another one when it is gone.
func NewLater(dir, room string, limits Limits) *Writer {
	return &Writer{dir: dir, room: room, segment: limits.segmentBytes(), now: time.Now, marks: marks{path: filepath.Join(dir, fileTimes)}}
}

// MakeRoom makes the directory of a log to come, unless it is there.
func MakeRoom(dir string) {
	if os.Mkdir(dir, 0o700) == nil {
		new(lost).reserve(dir)
	}
}

// begin makes the directory of a log that has none yet.
func (w *Writer) begin() error {
	if w.room == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(w.dir), 0o711); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	err := os.Rename(w.room, w.dir)
	if errors.Is(err, os.ErrNotExist) { // the disk was full when it was to be made
		err = os.Mkdir(w.dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	w.room = ""
	w.lost.found(w.dir)
	return nil
}

// Resume goes on with the copy of a log in dir, which an earlier writer may have
// begun. It writes behind the last byte that is there, wherever that one broke
// off or the disk has damaged it; what it could not write is not marked, as it may come again.
func Resume(dir string, limits Limits) (*Writer, error) {
	offs, err := segments(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, segment: limits.segmentBytes(), now: time.Now, exact: true, marks: marks{path: filepath.Join(dir, fileTimes)}}
	if len(offs) == 0 {
		return w, w.rotate()
	}
	last := offs[len(offs)-1]
	if w.file, err = os.OpenFile(filepath.Join(dir, segmentName(last)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640); err != nil {
		return nil, fmt.Errorf("write log: %w", err)
	}
	size, sums, err := resumeSums(dir, last)
	if err != nil {
		w.file.Close()
		return nil, fmt.Errorf("write log: %w", err)
	}
	w.sums, w.tail = sums, offs[1:]
	w.written, w.left = last+size, max(0, w.segment-size)
	w.Output = w.written
	return w, w.marks.resume()
}

// End is the offset behind the last byte.
func (w *Writer) End() int64 { return w.written }

// Skip leaves out the bytes up to an offset, which are kept nowhere: readers are
// told how many.
func (w *Writer) Skip(to int64) error {
	if to <= w.written {
		return nil
	}
	was := w.written
	w.written = to
	if err := w.rotate(); err != nil {
		w.written = was
		return err
	}
	return nil
}

func segmentName(off int64) string { return fmt.Sprintf("%020d.log", off) }

// Write keeps all of p. It fails when the disk does; what was not written is
// counted, and a mark in the log says so before the next byte that is.
func (w *Writer) Write(p []byte) (int, error) {
	w.Output += int64(len(p))
	if w.exact {
		w.marks.at(w.written, w.now())
		return w.put(p)
	}
	err := w.begin()
	if err == nil {
		err = w.sayLost(len(p))
	}
	if err != nil {
		w.lost.miss(int64(len(p)), err)
		return 0, err
	}
	w.marks.at(w.written, w.now())
	n, err := w.put(p)
	if err != nil {
		w.lost.miss(int64(len(p)-n), err)
	}
	return n, err
}

// put writes p behind the last byte, over as many files as it takes.
func (w *Writer) put(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		if w.left == 0 {
			if err := w.rotate(); err != nil {
				return total - len(p), err
			}
		}
		n, err := w.file.Write(p[:min(int64(len(p)), w.left)])
		w.sums.add(p[:n])
		w.written += int64(n)
		w.left -= int64(n)
		p = p[n:]
		if err != nil {
			return total - len(p), fmt.Errorf("write log: %w", err)
		}
	}
	return total, nil
}

// rotate starts the next file and drops the oldest but the first.
func (w *Writer) rotate() error {
	f, err := os.OpenFile(filepath.Join(w.dir, segmentName(w.written)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	if w.file != nil {
		w.file.Close()
		w.tail = append(w.tail, w.written)
	}
	w.file, w.left = f, w.segment
	w.sums.close()
	w.sums = sums{path: filepath.Join(w.dir, sumName(w.written))}
	for len(w.tail) > logSegments-1 {
		for _, name := range []string{sumName(w.tail[0]), segmentName(w.tail[0])} { // see Log.open
			if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("write log: %w", err)
			}
		}
		w.tail = w.tail[1:]
	}
	return nil
}

// Sync has on the disk what was written.
func (w *Writer) Sync() error {
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// Close ends the log.
func (w *Writer) Close() error {
	if w.file == nil && w.lost.bytes == 0 { // there was nothing
		return nil
	}
	w.marks.close()
	w.sums.close()
	err := w.sayLastLost()
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	return err
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
		if !ok {
			digits, ok = strings.CutSuffix(e.Name(), ".sum") // of a file that the disk may have lost
		}
		off, err := strconv.ParseInt(digits, 10, 64)
		if ok && err == nil && off >= 0 {
			out = append(out, off)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Pump copies a container's output into its log until every process that
// could write has ended. A log that cannot be written loses output, as a full
// disk must not stop the job; the first error is returned at the end.
func Pump(w io.Writer, r io.Reader) error {
	room := pumps.Get().(*[64 << 10]byte)
	defer pumps.Put(room)
	buf := room[:]
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

// pumps are what output is read into. Where programs follow each other in a container it is used again: two
// new ones for each were most of what a shim had to collect.
var pumps = sync.Pool{New: func() any { return new([64 << 10]byte) }}
