package image

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gbatch/oci/ref"
)

// localFiles is a local image that the store has opened for a worker: a
// directory, or one file. Nothing that links out of the allowed roots is read.
type localFiles struct {
	dir     *os.Root
	archive *os.File
}

// openLocal opens a local image below one of the allowed roots.
func (s *Store) openLocal(r ref.Ref) (*localFiles, error) {
	root, name, err := s.openRoot(r.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var l localFiles
	if r.Transport == ref.OCILayout {
		if info, err := root.Stat(name); err == nil && !info.IsDir() {
			return nil, fail(BadReference, "%s is not a directory", r.Path)
		}
		l.dir, err = root.OpenRoot(name)
	} else {
		l.archive, err = openRegular(root, name)
	}
	if err != nil {
		return nil, localError(err)
	}
	return &l, nil
}

func (s *Store) openRoot(path string) (*os.Root, string, error) {
	for _, dir := range s.config.LocalRoots {
		name, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, "", localError(err)
		}
		return root, name, nil
	}
	if len(s.config.LocalRoots) == 0 {
		return nil, "", fail(Denied, "this node takes no images from local files")
	}
	return nil, "", fail(Denied, "local images must lie below %s on this node", strings.Join(s.config.LocalRoots, " or "))
}

// open opens a part for a worker to read; "." is the archive.
func (l *localFiles) open(name string) (*os.File, error) {
	if l.archive != nil {
		return l.again()
	}
	f, err := openRegular(l.dir, name)
	if err != nil {
		return nil, localError(err)
	}
	return f, nil
}

// again opens the archive as a file of its own, as reading moves the place in a file.
func (l *localFiles) again() (f *os.File, err error) {
	conn, err := l.archive.SyscallConn()
	if err != nil {
		return nil, err
	}
	closed := conn.Control(func(fd uintptr) { f, err = os.Open("/proc/self/fd/" + strconv.Itoa(int(fd))) })
	return f, errors.Join(closed, err)
}

func (l *localFiles) close() {
	if l.dir != nil {
		l.dir.Close()
	}
	if l.archive != nil {
		l.archive.Close()
	}
}

// openRegular opens a file without waiting for the other end of a FIFO.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fail(BadReference, "%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
