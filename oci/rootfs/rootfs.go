// Package rootfs puts directories and files into a root file system before its
// container begins. Whatever the image has there, its links lead nowhere outside
// of it. Nothing may run in it meanwhile.
package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	pathrs "github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
)

// Root is a root file system, and who root of it is by the host's ids.
type Root struct {
	Top      *os.File
	UID, GID int
}

// File is a small file.
type File struct {
	Path string `json:"path"` // absolute
	Text string `json:"text"`
	Link string `json:"link,omitempty"` // where in the container it leads, in place of a text

	Program bool `json:"program,omitempty"` // everybody may run it
}

// Furnish makes directories and files. What it could not make is said with the
// error.
func (r Root) Furnish(dirs []string, files []File) (what string, err error) {
	for _, d := range dirs {
		if err := r.dir(d); err != nil {
			return "directory " + d, err
		}
	}
	for _, f := range files {
		if err := r.file(f); err != nil {
			return "file " + f.Path, err
		}
	}
	return "", nil
}

// dir makes a directory with its parents, and lets everybody write to it.
func (r Root) dir(dir string) error {
	h, err := r.open(dir)
	if err != nil {
		return err
	}
	h.Close()
	part := inside(dir)
	if h, err = pathrs.MkdirAllHandle(r.Top, part, 0o755); err == nil {
		err = h.Chmod(0o777 | os.ModeSticky)
	}
	h.Close()
	return err
}

// inside is an absolute path in an image as one that begins at its top.
func inside(name string) string { return "." + path.Clean("/"+name) }

// open opens a directory; what is missing of it is made.
func (r Root) open(dir string) (*os.File, error) {
	h, err := pathrs.OpenatInRoot(r.Top, inside(dir))
	if !errors.Is(err, os.ErrNotExist) {
		return h, err
	}
	parts := strings.Split(strings.TrimPrefix(inside(dir), "./"), "/")
	for i := range parts {
		h.Close()
		part := strings.Join(parts[:i+1], "/")
		h, err = pathrs.OpenatInRoot(r.Top, part)
		if errors.Is(err, os.ErrNotExist) {
			if h, err = pathrs.MkdirAllHandle(r.Top, part, 0o755); err == nil {
				err = h.Chown(r.UID, r.GID)
			}
		}
		if err != nil {
			h.Close()
			return nil, err
		}
	}
	return h, nil
}

// file puts a small file where the image may have one, or a link, or nothing.
func (r Root) file(f File) error {
	name, mode := f.Path, os.FileMode(0o644)
	if f.Program {
		mode = 0o755
	}
	dir, err := r.open(path.Dir(path.Clean("/" + name)))
	if err != nil {
		return err
	}
	defer dir.Close()
	at, base := int(dir.Fd()), path.Base(name)
	var st unix.Stat_t
	err = unix.Fstatat(at, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && (f.Link != "" || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1) {
		err = unix.Unlinkat(at, base, 0)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if f.Link != "" {
		return unix.Symlinkat(f.Link, at, base)
	}
	fd, err := unix.Openat(at, base, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	_, err = out.WriteString(f.Text)
	return errors.Join(err, out.Chown(r.UID, r.GID), out.Chmod(mode), out.Close())
}

// Give makes a user the owner of directories with all that is in them, which nobody else writes to.
func Give(dirs []string, uid, gid int) error {
	for _, top := range dirs {
		err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, uid, gid)
		})
		if err != nil {
			return fmt.Errorf("give files to the container's user: %w", err)
		}
	}
	return nil
}
