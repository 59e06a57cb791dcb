// Package atomicfile replaces small files as a whole, so that a crash leaves
// the old content or the new. It locks nothing: two writers of one file are the
// caller's to keep apart.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the file at path. A reader sees the old content or the new,
// but a power cut may lose both.
func Write(path string, data []byte) error { return replace(path, data, 0o600, false) }

// WriteDurable is Write, and returns only when the new content would survive a
// power cut.
func WriteDurable(path string, data []byte) error { return writeDurable(path, data, 0o600) }

// WriteReadable is WriteDurable for a file that everybody may read.
func WriteReadable(path string, data []byte) error { return writeDurable(path, data, 0o644) }

func writeDurable(path string, data []byte, mode os.FileMode) error {
	if err := replace(path, data, mode, true); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func replace(path string, data []byte, mode os.FileMode, sync bool) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && mode != 0o600 {
		err = f.Chmod(mode) // whatever the umask is
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return Rename(tmp, path)
}

// Rename replaces the file at path by another one. A directory there, as a disk that was repaired may leave, is
// moved aside.
func Rename(other, path string) error {
	err := os.Rename(other, path)
	if err == nil {
		return nil
	}
	if st, serr := os.Lstat(path); serr != nil || !st.IsDir() {
		return err
	}
	aside := path + AsideSuffix
	if err := errors.Join(os.RemoveAll(aside), os.Rename(path, aside)); err != nil {
		return err
	}
	return os.Rename(other, path)
}

// SyncDir makes the names in a directory survive a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
