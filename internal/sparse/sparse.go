// Package sparse finds what was written of a file, so that its holes need not be
// read. It reads nothing itself and keeps nothing; it moves the file's own offset.
package sparse

import (
	"errors"
	"iter"
	"os"

	"golang.org/x/sys/unix"
)

// Written yields the parts of a file's first size bytes that were written, in their
// order, each from an offset to before another. Outside of them are zeros. A file
// system that cannot tell has written all.
func Written(f *os.File, size int64) iter.Seq2[int64, int64] {
	return func(yield func(from, until int64) bool) {
		for at := int64(0); at < size; {
			from, until := next(f, at, size)
			if from >= size || !yield(from, until) {
				return
			}
			at = until
		}
	}
}

// next is the first part from an offset on; it begins at size if there is none.
func next(f *os.File, at, size int64) (from, until int64) {
	from, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size
	}
	if err != nil {
		return at, size
	}
	until, err = unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE)
	if err != nil || until <= from {
		until = size
	}
	return from, min(until, size)
}
