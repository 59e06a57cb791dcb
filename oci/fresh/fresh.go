// Package fresh gives each program of a container that several run in, one after the
// other, the same empty directories. Who empties them holds them since before the first.
package fresh

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Mode is that of /tmp.
const Mode = os.ModeSticky | 0o777

// Dir is one of them.
type Dir struct {
	root  *os.Root
	owner *Owner
	attrs string // names of its extended attributes
}

// Owner is whose a directory is that is open to everybody, as /tmp.
type Owner struct{ UID, GID int }

// Open takes hold of a directory. One with an owner is made that one's and open to everybody again
// each time.
func Open(place string, owner *Owner) (*Dir, error) {
	root, err := os.OpenRoot(place)
	if err != nil {
		return nil, err
	}
	f := &Dir{root: root, owner: owner}
	d, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	defer d.Close()
	f.attrs = attributes(d)
	return f, nil
}

// attributes are the names of a directory's extended attributes, by which files that are
// made there may get other rights.
func attributes(d *os.File) string {
	names := make([]byte, 4096)
	n, err := unix.Flistxattr(int(d.Fd()), names)
	if err != nil {
		return err.Error()
	}
	return string(names[:n])
}

// OpenIn takes hold of a directory in a container whose first process is pid, which has run
// nothing of the user's.
func OpenIn(pid int, target string, owner *Owner) (*Dir, error) {
	fd, err := openIn(pid, target)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return Open(fmt.Sprintf("/proc/self/fd/%d", fd), owner)
}

func openIn(pid int, target string) (fd int, err error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	fd, err = unix.Openat2(root, "."+target, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, fmt.Errorf("find %s in the container: %w", target, err)
	}
	return fd, nil
}

// Close lets go of it.
func (f *Dir) Close() { f.root.Close() }

// Empty removes all that lies there. Nothing may run that could change it meanwhile.
func (f *Dir) Empty() error {
	d, err := f.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if f.owner != nil {
		if err := errors.Join(d.Chown(f.owner.UID, f.owner.GID), d.Chmod(Mode)); err != nil {
			return err
		}
	}
	if attributes(d) != f.attrs {
		return errors.New("the directory's attributes were changed")
	}
	for {
		names, err := d.Readdirnames(1000)
		for _, name := range names {
			if err := f.root.RemoveAll(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := d.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}
