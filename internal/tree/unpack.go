package tree

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
)

// Unpack writes a tree below an open directory that is empty and nobody else
// writes to. What it refuses, Entries refuses.
func Unpack(r io.Reader, dir *os.Root, most Size) (Size, error) {
	type mode struct {
		name string
		perm fs.FileMode
	}
	var dirs []mode // their permissions last, so that there can be files in them
	got, err := Entries(r, most, func(h *tar.Header, body io.Reader) error {
		perm := fs.FileMode(h.Mode).Perm()
		switch h.Typeflag {
		case tar.TypeDir:
			dirs = append(dirs, mode{h.Name, perm | 0o700}) // its owner can use it
			return dir.Mkdir(h.Name, 0o700)
		case tar.TypeSymlink:
			return dir.Symlink(h.Linkname, h.Name)
		}
		f, err := dir.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, body)
		return errors.Join(err, f.Chmod(perm), f.Close())
	})
	for _, d := range slices.Backward(dirs) {
		if err == nil {
			err = dir.Chmod(d.name, d.perm)
		}
	}
	return got, err
}
