package logs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// Beside the log's files stands one with marks: where in the output a time was.
// Output that comes within a mark's span belongs to it; what comes later makes
// the next one. Spans double after each marksPerSpan marks, so that the file
// stays small however long a container writes.

const (
	fileTimes    = "times"
	markSize     = 16 // offset and Unix milliseconds, of 8 bytes each, big-endian; see putMark
	marksPerSpan = 1 << 15

	markBits = 48 // more than either will ever need
)

// putMark writes a mark. Its sum is in the upper bytes of both numbers.
func putMark(b []byte, off int64, at time.Time) {
	binary.BigEndian.PutUint64(b, uint64(off))
	binary.BigEndian.PutUint64(b[8:], uint64(at.UnixMilli()))
	sum := crc32.Checksum(b[:markSize], castagnoli())
	binary.BigEndian.PutUint16(b, uint16(sum>>16))
	binary.BigEndian.PutUint16(b[8:], uint16(sum))
}

// readMark reads a mark. Those of earlier versions have no sum, and are taken as they are. It is not ok
// where the disk has changed the mark, or lost it.
func readMark(b []byte) (off int64, at time.Time, ok bool) {
	first, second := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	const low = 1<<markBits - 1
	off, at = int64(first&low), time.UnixMilli(int64(second&low))
	if first <= low && second <= low {
		return off, at, second > 0
	}
	var whole [markSize]byte
	putMark(whole[:], off, at)
	return off, at, bytes.Equal(whole[:], b[:markSize])
}

// markSpan is how long mark i lasts.
func markSpan(i int64) time.Duration { return time.Second << min(i/marksPerSpan, 20) }

// marks writes them. It has one owner.
type marks struct {
	path string
	file *os.File
	n    int64
	last time.Time
	bad  bool // it cannot be written: the log does without
}

// at notes that the output at off is written now.
func (m *marks) at(off int64, now time.Time) {
	if m.bad || m.n > 0 && now.Sub(m.last) < markSpan(m.n-1) && !now.Before(m.last) {
		return
	}
	if m.file == nil {
		f, err := os.OpenFile(m.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
		if err != nil {
			m.bad = true
			return
		}
		m.file = f
	}
	var b [markSize]byte
	putMark(b[:], off, now)
	if _, err := m.file.WriteAt(b[:], m.n*markSize); err != nil {
		m.bad = true
		return
	}
	m.n++
	m.last = now
}

// resume goes on with the marks that are there.
func (m *marks) resume() error {
	f, err := os.OpenFile(m.path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	m.file = f
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	if m.n = st.Size() / markSize; m.n == 0 {
		return nil
	}
	var b [markSize]byte
	if _, err := f.ReadAt(b[:], (m.n-1)*markSize); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	if _, at, ok := readMark(b[:]); ok { // else the next output has a mark at once
		m.last = at
	}
	return nil
}

func (m *marks) close() {
	if m.file != nil {
		m.file.Close()
	}
}

// since is where the output begins that was written at t or later, to the second
// in the first nine hours of output, more roughly later. It is 0 for a log
// without marks. Where marks were damaged it is too early rather than too late.
func (l *Log) since(t time.Time) (int64, error) {
	if l.whole != nil {
		return l.whole.since(t), nil
	}
	f, err := openFile(filepath.Join(l.dir, fileTimes))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(f)
		f.Close()
	}
	if err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	type mark struct {
		off   int64
		until time.Time
		after bool // marks right before it are damaged
	}
	var marks []mark
	gap := false
	for i := range len(data) / markSize {
		off, at, ok := readMark(data[i*markSize:])
		if ok {
			marks = append(marks, mark{off, at.Add(markSpan(int64(i))), gap})
		}
		gap = !ok
	}
	i := sort.Search(len(marks), func(i int) bool { return !marks[i].until.Before(t) })
	if i < len(marks) {
		gap = marks[i].after
	}
	switch {
	case gap && i == 0:
		return 0, nil
	case gap:
		return marks[i-1].off, nil
	case i == len(marks):
		return l.End()
	}
	return marks[i].off, nil
}
