package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gbatch/oci/failure"
)

// Below is a mount of what lies in a directory that programs of the container may write
// to, before it is looked for and while it is.
type Below struct {
	Target string `json:"target"` // of a mount of the spec
	Top    string `json:"top"`    // on the host
	Path   string `json:"path"`   // no link of it leads out of Top
}

// Pin shows what is to be mounted at a place of the stage's, from where it can be mounted
// whatever becomes of the names in Top. Where there is nothing a directory is made, of the
// container's root and for everybody to write to.
func (b Below) Pin(place string, uid, gid int) error {
	err := b.pin(place, uid, gid)
	if err != nil {
		return &failure.Failure{Kind: failure.MountFailed, Message: fmt.Sprintf("cannot mount %s: its volume has something in the way of %s", b.Target, b.Path), Detail: err.Error()}
	}
	return nil
}

func (b Below) pin(place string, uid, gid int) error {
	top, err := unix.Open(b.Top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	at, done := top, ""
	for name := range strings.SplitSeq(filepath.Clean(b.Path), "/") {
		done = filepath.Join(done, name)
		next, err := unix.Openat2(top, done, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
		if errors.Is(err, unix.ENOENT) {
			next, err = makeIn(at, name, uid, gid)
		}
		if at != top {
			unix.Close(at)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", done, err)
		}
		at = next
	}
	if at != top {
		defer unix.Close(at)
	}
	return show(at, place)
}

// makeIn makes a directory in an open one. What somebody puts in its place meanwhile has
// another owner, or is in the same volume.
func makeIn(in int, name string, uid, gid int) (int, error) {
	if err := unix.Mkdirat(in, name, 0o700); err != nil {
		return -1, err
	}
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && int(st.Uid) != os.Geteuid() {
		err = errors.New("it was exchanged")
	}
	if err == nil {
		err = errors.Join(unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH), unix.Chmod(byHandle(fd), 0o777))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// show mounts what is open at a place, which it makes.
func show(fd int, place string) error {
	if err := makePlace(fd, place); err != nil {
		return err
	}
	return unix.Mount(byHandle(fd), place, "", unix.MS_BIND|unix.MS_REC, "")
}

// Attach puts mounts that are nowhere to be seen at a place of the stage's, which it makes.
func Attach(tree *os.File, place string) error {
	if err := makePlace(int(tree.Fd()), place); err != nil {
		return err
	}
	return unix.MoveMount(int(tree.Fd()), "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// makePlace makes a directory or a file, as what is to be shown there is.
func makePlace(fd int, place string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.Mkdir(place, Mode)
	}
	return os.WriteFile(place, nil, 0o600)
}

func byHandle(fd int) string { return fmt.Sprintf("/proc/thread-self/fd/%d", fd) }
