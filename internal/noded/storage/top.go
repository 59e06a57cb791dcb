package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// errLink says that a directory of the site's is a link that somebody else made.
var errLink = errors.New("is a link that does not belong to root")

// top opens the directory that a template stands for, as the daemon: it is the
// site's word that the tenant's storage is there. What precedes the first
// placeholder is the administrator's and must exist; from there on users may
// write, and so only links of root are followed. What is missing is made if
// create is set: the project's, and from the user's name on the user's.
func (who Tenant) top(template string, mode uint32, create bool) (*os.File, error) {
	if _, err := expand(template, who); err != nil {
		return nil, err // before anything is made
	}
	template = filepath.Clean("/" + template)
	fixed, rest := template, ""
	if i := strings.IndexByte(template, '{'); i >= 0 || create {
		if i < 0 {
			i = len(template)
		}
		i = strings.LastIndexByte(template[:i], '/')
		fixed, rest = template[:i+1], template[i+1:]
	}
	h, err := openDir(unix.AT_FDCWD, fixed)
	if err != nil || rest == "" {
		return h, err
	}
	m := who.maker(mode)
	if who.GID != 0 {
		m.uid = 0
	}
	for part := range strings.SplitSeq(rest, "/") {
		if strings.Contains(part, "{user}") {
			m.uid = who.UID
		}
		name, err := expand(part, who)
		var next *os.File
		if err == nil {
			next, err = m.enter(h, name, create)
		}
		h.Close()
		if err != nil {
			return nil, err
		}
		h = next
	}
	return h, nil
}

// enter opens a directory in another one, by root's links only.
func (m maker) enter(dir *os.File, name string, create bool) (*os.File, error) {
	h, err := openAt(int(dir.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if create && errors.Is(err, unix.ENOENT) {
		if err := m.mkdir(dir, name); err != nil {
			return nil, err
		}
		h, err = openAt(int(dir.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW)
	}
	if create && err == nil {
		if err = m.finish(h); err != nil {
			h.Close()
			return nil, err
		}
	}
	if !errors.Is(err, unix.ENOTDIR) {
		return h, err
	}
	link, err := openAt(int(dir.Fd()), name, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer link.Close()
	st, err := link.Stat()
	switch {
	case err != nil:
		return nil, err
	case st.Mode()&os.ModeSymlink == 0:
		return nil, unix.ENOTDIR
	case st.Sys().(*syscall.Stat_t).Uid != 0:
		return nil, fmt.Errorf("%s %w", name, errLink)
	}
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(link.Fd()), "", to) // of the very link that was looked at
	if err != nil {
		return nil, err
	}
	return openDir(int(dir.Fd()), string(to[:n]))
}

func openDir(at int, name string) (*os.File, error) { return openAt(at, name, unix.O_DIRECTORY) }

func openAt(at int, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
