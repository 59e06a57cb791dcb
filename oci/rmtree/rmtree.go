// Package rmtree removes directory trees that others have made. However deep one is,
// few descriptors are open meanwhile: os.RemoveAll holds one for each level, so a job
// that makes a deep tree would take all of its node's daemon, and the tree would stay.
package rmtree

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxOpen is how many levels are gone down by one descriptor each. What lies deeper is
// moved up first.
const maxOpen = 64

// Remove removes path and what is below it; that it is not there is no error. Links are
// removed and not followed. Nobody else may have the tree any more: what is put into it
// meanwhile may stay, and is an error then. What cannot be removed does not keep the
// rest, and the first such error is returned, an *os.PathError with path.
func Remove(path string) error {
	fd, err := open(unix.AT_FDCWD, filepath.Dir(path))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err == nil {
		defer unix.Close(fd)
		t := tree{top: -1}
		err = t.remove(fd, filepath.Base(path), 0)
	}
	if err != nil {
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

// tree is one that is being removed.
type tree struct {
	top int // its first directory; -1: not open yet
}

// remove removes a name in a directory, which is so deep below the tree's first one.
func (t *tree) remove(in int, name string, depth int) error {
	err := unix.Unlinkat(in, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) { // EPERM: some file systems say so of directories
		return err
	}
	err = unix.Unlinkat(in, name, unix.AT_REMOVEDIR)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		return err
	case depth == maxOpen:
		// The first directory is read again until nothing is left in it.
		return unix.Renameat2(in, name, t.top, rand.Text(), unix.RENAME_NOREPLACE)
	}
	if err := t.empty(in, name, depth); err != nil {
		return err
	}
	return unix.Unlinkat(in, name, unix.AT_REMOVEDIR)
}

// empty removes what is in a directory.
func (t *tree) empty(in int, name string, depth int) error {
	fd, err := open(in, name)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	if depth == 0 {
		t.top = fd
	}
	for {
		names, removed, err := t.pass(dir, fd, depth)
		if err != nil && removed == 0 || names == 0 {
			return err // nothing is left, or nothing more can be removed
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// pass goes through a directory once: names is how many there were, removed how many
// are gone. Some may be left out, as names go while they are read.
func (t *tree) pass(dir *os.File, fd, depth int) (names, removed int, first error) {
	for {
		list, err := dir.Readdirnames(1024)
		for _, name := range list {
			names++
			if err := t.remove(fd, name, depth+1); err == nil {
				removed++
			} else if first == nil {
				first = err
			}
		}
		if errors.Is(err, io.EOF) {
			return names, removed, first
		}
		if err != nil {
			return names, removed, errors.Join(first, err)
		}
	}
}

func open(in int, name string) (int, error) {
	for {
		fd, err := unix.Openat(in, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
