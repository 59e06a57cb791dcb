package floor

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// placeAt is where a file that is made by OpenHere says which file it is, behind the marks.
const placeAt = 2 * slotSize

// OpenHere makes the file anew, says m, and which file it is in which boot of the machine: a copy of it, or what was
// written over it from a copy of an earlier one, says of another. It is there as a whole or not at all.
func OpenHere(fs vfs.FS, path string, m Mark, boot string) (*File, error) {
	if err := create(fs, path+".made", m); err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	o, err := Open(fs, path+".made", m)
	if err != nil {
		return nil, err
	}
	if _, err = o.f.WriteAt(place(path+".made", boot), placeAt); err == nil {
		err = fs.Rename(path+".made", path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), o.Close())
	}
	return o, nil
}

// IsHere says whether a file was made by OpenHere in this boot, where it is: what it says is then as new as can be.
func IsHere(fs vfs.FS, path, boot string) bool {
	f, err := fs.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	have, want := make([]byte, sha256.Size), place(path, boot)
	n, _ := f.ReadAt(have, placeAt) // what cannot be read says nothing
	return bytes.Equal(have[:n], want)
}

// place names a file by its number and the moment at which it was made. Of file systems without these, as those of
// tests, all files are alike.
func place(path, boot string) []byte {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		st = unix.Statx_t{}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d.%09d", boot, st.Ino, st.Btime.Sec, st.Btime.Nsec))
	return sum[:]
}
