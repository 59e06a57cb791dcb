package logs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lost is output that could not be written since the last byte that was. It has
// no place in the log: a mark stands there, as bytes of the log, so that whoever
// reads or copies it sees that something is missing, how much and why.
type lost struct {
	bytes int64
	why   string
	spare string // a file with room for the last mark; empty: there is none
}

// fileSpare has its room on the disk from the beginning on, for a log whose disk
// is still full when it ends.
const (
	fileSpare  = "spare"
	spareBytes = 4096
)

// reserve makes the spare file. A disk that has no room for it is no error:
// then the mark may be missing, too.
func (l *lost) reserve(dir string) {
	path := filepath.Join(dir, fileSpare)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o640)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Fallocate(int(f.Fd()), 0, 0, spareBytes) != nil {
		os.Remove(path)
		return
	}
	l.spare = path
}

// found takes the file that is in a directory, if it is.
func (l *lost) found(dir string) {
	path := filepath.Join(dir, fileSpare)
	if _, err := os.Lstat(path); err == nil {
		l.spare = path
	}
}

// miss counts bytes that could not be written, and why the first of them could not.
func (l *lost) miss(n int64, err error) {
	if l.bytes += n; l.bytes > n {
		return
	}
	l.why = "cannot be written"
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		l.why = "disk full"
	} else if errno, ok := errors.AsType[unix.Errno](err); ok {
		l.why = errno.Error()
	}
}

func (l *lost) mark() []byte {
	return fmt.Appendf(nil, "\n[gbatch: %d bytes were lost here: %s]\n", l.bytes, l.why)
}

// sayLost writes the mark of what was lost, if there is room for it and for
// the next bytes: so a disk that is full and not quite full gets no mark after mark.
func (w *Writer) sayLost(next int) error {
	if w.lost.bytes == 0 {
		return nil
	}
	mark := w.lost.mark()
	if w.left < int64(len(mark)) {
		if err := w.rotate(); err != nil {
			return err
		}
	}
	end := w.segment - w.left
	err := unix.Fallocate(int(w.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, end, min(int64(len(mark)+next), w.left))
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("write log: %w", err)
	}
	was := w.sums
	if n, err := w.put(mark); err != nil {
		if n > 0 { // a mark is there as a whole or not at all
			w.written -= int64(n)
			w.left += int64(n)
			err = errors.Join(err, w.sums.back(was), w.file.Truncate(end))
		}
		return err
	}
	w.lost.bytes = 0
	return nil
}

// sayLastLost does so at the end of the log, on a full disk by the spare file,
// which becomes the log's last.
func (w *Writer) sayLastLost() error {
	err := w.begin()
	if err == nil {
		err = w.sayLost(0)
	}
	if err == nil || w.lost.spare == "" {
		if w.lost.spare != "" {
			os.Remove(w.lost.spare)
		}
		return err
	}
	f, err := os.OpenFile(w.lost.spare, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	defer f.Close()
	mark := w.lost.mark()
	if _, err = f.WriteAt(mark, 0); err == nil {
		err = f.Truncate(int64(len(mark)))
	}
	if err == nil {
		err = os.Rename(w.lost.spare, filepath.Join(w.dir, segmentName(w.written)))
	}
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	sum := sums{path: filepath.Join(w.dir, sumName(w.written))}
	sum.add(mark)
	sum.close()
	return nil
}
