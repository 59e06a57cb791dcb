// Package fresh gives each program of a container that several run in, one after the
// other, the same empty directories. Who empties them holds them since before the first.
package fresh

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Mode is that of /tmp.
const Mode = os.ModeSticky | 0o777

// Dir is one of them.
type Dir struct {
	root  *os.Root
	fd    int // the same
	owner *Owner
	attrs string // names of its extended attributes
	buf   []byte
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
	f := &Dir{root: root, owner: owner, buf: make([]byte, 4096)}
	if f.fd, err = unix.Open(place, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		root.Close()
		return nil, &os.PathError{Op: "open", Path: place, Err: err}
	}
	f.attrs = f.attributes()
	return f, nil
}

// attributes are the names of the directory's extended attributes, by which files that are
// made there may get other rights.
func (f *Dir) attributes() string {
	n, err := unix.Flistxattr(f.fd, f.buf)
	if err != nil {
		return err.Error()
	}
	return string(f.buf[:n])
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
func (f *Dir) Close() {
	_ = unix.Close(f.fd)
	f.root.Close()
}

// Empty removes all that lies there. Nothing may run that could change it meanwhile. Usually there is nothing,
// so that is seen by few calls.
func (f *Dir) Empty() error {
	if err := f.restore(); err != nil {
		return err
	}
	if f.attributes() != f.attrs {
		return errors.New("the directory's attributes were changed")
	}
	for removed := true; removed; {
		if _, err := unix.Seek(f.fd, 0, unix.SEEK_SET); err != nil {
			return os.NewSyscallError("seek", err)
		}
		removed = false
		for {
			n, err := unix.ReadDirent(f.fd, f.buf)
			if err != nil {
				return os.NewSyscallError("read directory", err)
			}
			if n == 0 {
				break
			}
			_, _, names := unix.ParseDirent(f.buf[:n], -1, nil)
			for _, name := range names {
				if err := f.root.RemoveAll(name); err != nil {
					return err
				}
				removed = true
			}
		}
	}
	return nil
}

// restore makes it its owner's again, and open to everybody.
func (f *Dir) restore() error {
	if f.owner == nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return os.NewSyscallError("stat", err)
	}
	const mode = unix.S_ISVTX | 0o777
	if int(st.Uid) == f.owner.UID && int(st.Gid) == f.owner.GID && st.Mode&^unix.S_IFMT == mode {
		return nil
	}
	return errors.Join(unix.Fchown(f.fd, f.owner.UID, f.owner.GID), unix.Fchmod(f.fd, mode))
}
