package store

import (
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// fewFiles is how many more files a disk must take for the database to go on: a new log, a table, a list of files and what
// replaces them.
const fewFiles = 50

// Free is how many bytes the disk of the store has left. A database that runs
// into the end of its disk cannot even clean up, so the owner stops taking
// work before. It is an error where there is no room for more files, though there is for bytes.
func (s *Store) Free() (uint64, error) {
	u, err := s.cfg.FS.GetDiskUsage(s.cfg.Dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return math.MaxUint64, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at the disk of %s: %w", s.cfg.Dir, err)
	}
	if _, disk := s.cfg.FS.(lockingDisk); disk {
		err = roomForFiles(s.cfg.Dir)
	}
	return u.AvailBytes, err
}

func roomForFiles(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	if st.Files > 0 && st.Ffree < fewFiles { // some file systems have no such bound
		return fmt.Errorf("%d more files can be made on the disk of the controller, %d must stay free", st.Ffree, fewFiles)
	}
	return nil
}
