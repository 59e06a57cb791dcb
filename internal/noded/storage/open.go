package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maker opens directories below another one and makes missing ones. The kernel
// itself refuses to leave that (openat2 with RESOLVE_BENEATH), so that a link
// which is swapped in meanwhile helps nobody.
type maker struct {
	uid, gid int
	mode     uint32 // permission bits as chmod takes them
}

// takeOver gives a directory that was made when jobs were root on the host to
// its user, with what lies in it.
func (m maker) takeOver(h *os.File) error {
	st, err := h.Stat()
	if err != nil || st.Sys().(*syscall.Stat_t).Uid != 0 || m.uid == 0 {
		return err
	}
	at := "/proc/self/fd/" + strconv.Itoa(int(h.Fd()))
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Lchown(filepath.Join(at, e.Name()), m.uid, m.gid); err != nil {
			return err
		}
	}
	return os.Chown(at, m.uid, m.gid)
}

// resolve opens rel below the directory top as a handle.
func (m maker) resolve(top *os.File, rel string, create bool) (*os.File, error) {
	h, err := beneath(top, rel)
	if !create || !errors.Is(err, unix.ENOENT) {
		return h, err
	}
	parts := strings.Split(rel, "/")
	for i := range parts {
		if h, err = m.step(top, strings.Join(parts[:i+1], "/")); err != nil {
			return nil, err
		}
		if i < len(parts)-1 {
			h.Close()
		}
	}
	return h, nil
}

// step opens rel, whose parent exists, and makes it if it is missing.
func (m maker) step(root *os.File, rel string) (*os.File, error) {
	h, err := beneath(root, rel)
	if !errors.Is(err, unix.ENOENT) {
		return h, err
	}
	parent := root
	dir, name := filepath.Split(rel)
	if dir != "" {
		if parent, err = beneath(root, strings.TrimSuffix(dir, "/")); err != nil {
			return nil, err
		}
		defer parent.Close()
	}
	if err := m.mkdir(parent, name); err != nil {
		return nil, err
	}
	return beneath(root, rel)
}

// unfinished is the mode of a directory that is not yet its owner's: nobody gives one the sticky bit that only its owner may enter.
const unfinished = unix.S_ISVTX | 0o700

// mkdir makes name in parent. Another rank may make it at the same time: who
// comes second leaves it as it is.
func (m maker) mkdir(parent *os.File, name string) error {
	err := unix.Mkdirat(int(parent.Fd()), name, unfinished)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return err
	}
	return m.hand(parent, name)
}

// hand makes a directory its owner's. Owner first: chown clears the setgid bit of files, and some network file systems do so for
// directories too.
func (m maker) hand(parent *os.File, name string) error {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fchown(fd, m.uid, m.gid); err != nil {
		return err
	}
	return unix.Fchmod(fd, m.mode)
}

// finish hands over what another rank is about to, or a daemon would have that was killed: else the user could not enter it, for that
// moment or for ever. Both do the same.
func (m maker) finish(h *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(h.Fd()), &st); err != nil || st.Uid != 0 || st.Mode&^unix.S_IFMT != unfinished {
		return err
	}
	return m.hand(h, ".")
}

// beneath opens rel below root as a handle, never leaving root.
func beneath(root *os.File, rel string) (*os.File, error) {
	how := &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(int(root.Fd()), rel, how)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue // a rename somewhere raced with the look-up
		}
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), rel), nil
	}
}
