package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	markSize     = 16 // offset and Unix milliseconds, big-endian
	marksPerSpan = 1 << 15
)

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
	binary.BigEndian.PutUint64(b[:8], uint64(off))
	binary.BigEndian.PutUint64(b[8:], uint64(now.UnixMilli()))
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
	m.last = time.UnixMilli(int64(binary.BigEndian.Uint64(b[8:])))
	return nil
}

func (m *marks) close() {
	if m.file != nil {
		m.file.Close()
	}
}

// Since is where the output begins that was written at t or later, to the second
// in the first nine hours of output, more roughly later. It is 0 for a log
// without marks.
func (l *Log) Since(t time.Time) (int64, error) {
	data, err := os.ReadFile(filepath.Join(l.dir, fileTimes))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	n := len(data) / markSize
	read := func(i int) (off int64, until time.Time) {
		b := data[i*markSize:]
		return int64(binary.BigEndian.Uint64(b)), time.UnixMilli(int64(binary.BigEndian.Uint64(b[8:]))).Add(markSpan(int64(i)))
	}
	i := sort.Search(n, func(i int) bool {
		_, until := read(i)
		return !until.Before(t)
	})
	if i == n {
		return l.End()
	}
	off, _ := read(i)
	return off, nil
}
