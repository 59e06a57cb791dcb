package program

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Check says why a program may not be run as root; nil: it may. Nobody but root
// may be able to change it, or to put something else in its place.
func Check(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, pathCause(err))
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return fmt.Errorf("%s: %w", real, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s is not a file", path)
	case st.Mode&0o100 == 0:
		return fmt.Errorf("%s cannot be executed: chmod 755 %s", path, real)
	}
	if err := checkOwner(real, &st); err != nil {
		return err
	}
	if err := checkAbove(real); err != nil {
		return err
	}
	return checkAbove(path) // where links lie that lead there
}

func checkAbove(path string) error {
	for at := path; at != "/"; {
		at = filepath.Dir(at)
		var st unix.Stat_t
		if err := unix.Stat(at, &st); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if err := checkOwner(at, &st); err != nil {
			return err
		}
	}
	return nil
}

func checkOwner(path string, st *unix.Stat_t) error {
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case st.Uid != 0:
		return fmt.Errorf("%s belongs to user %d, and what runs as root must be root's: chown root %s", path, st.Uid, path)
	case st.Mode&0o022 != 0 && !(dir && st.Mode&unix.S_ISVTX != 0):
		return fmt.Errorf("%s can be changed by others than root, and would run as root: chmod go-w %s", path, path)
	}
	return nil
}

// pathCause is an error without the path that its reader knows.
func pathCause(err error) error {
	if p, ok := err.(*os.PathError); ok {
		return p.Err
	}
	return err
}
