package store

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pack writes the files of a copy of a store that nobody has open, as a tar archive.
func (c Config) Pack(w io.Writer) error {
	c = c.onDisk()
	t := tar.NewWriter(w)
	files, err := c.FS.List(c.Dir)
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, name := range files {
		if err := c.packFile(t, name); err != nil {
			return err
		}
	}
	return t.Close()
}

func (c Config) packFile(t *tar.Writer, name string) error {
	f, err := c.FS.Open(filepath.Join(c.Dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.IsDir() {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// Unpack is the inverse of Pack, into a directory that is not there. What comes is of another controller, and yet no name
// may lead out of the directory, which only this one's user may enter.
func (c Config) Unpack(r io.Reader) error {
	c = c.onDisk()
	if err := c.FS.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return c.syncDir()
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || h.Name != filepath.Base(h.Name) || h.Name == ".." || sparse(h) {
			return fmt.Errorf("it holds %q, which no store does", h.Name)
		}
		if err := c.unpackFile(t, h.Name); err != nil {
			return err
		}
	}
}

func (c Config) unpackFile(r io.Reader, name string) error {
	path := filepath.Join(c.Dir, name)
	_, err := c.FS.Stat(path)
	if err == nil {
		return fmt.Errorf("it holds %q twice", name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := c.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}

// sparse says that a file is larger than what was sent of it.
func sparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func (c Config) syncDir() error {
	d, err := c.FS.OpenDir(c.Dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// There says whether anything has the name of the store's directory.
func (c Config) There() bool {
	_, err := c.onDisk().FS.Stat(c.Dir)
	return err == nil
}

// Make makes the directory, empty.
func (c Config) Make() error {
	c = c.onDisk()
	return errors.Join(c.FS.MkdirAll(c.Dir, 0o700), c.syncDir())
}

// Remove removes a store that nobody has open, if it is there, with the file beside it that has its mark.
func (c Config) Remove() error {
	disk := c.onDisk().FS
	return errors.Join(disk.RemoveAll(c.Dir), disk.RemoveAll(c.floorFile()))
}

// Rename has a store that nobody has open, if it is there, be in another directory of the same disk, with its mark.
func (c Config) Rename(dir string) error {
	disk := c.onDisk().FS
	if err := disk.Rename(c.Dir, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.Rename(c.floorFile(), dir+MarkSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
