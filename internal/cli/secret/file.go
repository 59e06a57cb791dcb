package secret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file that is about to hold a secret: its owner's alone, and the old
// content or the whole new one, whatever happens.
type File struct {
	path string
	tmp  *os.File
}

// NewFile makes sure that the file at path can be written, and makes its directory
// if there is none. Commit or Discard follows.
func NewFile(path string) (*File, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "write", Path: path, Err: errors.New("it is no file")}
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return nil, err
	}
	return &File{path, tmp}, nil
}

// Commit writes the secret and replaces what was there.
func (f *File) Commit(secret string) error {
	_, err := f.tmp.WriteString(secret)
	if err = errors.Join(err, f.tmp.Sync(), f.tmp.Close()); err != nil {
		return err
	}
	return os.Rename(f.tmp.Name(), f.path)
}

// Discard leaves nothing behind if nothing was committed.
func (f *File) Discard() {
	f.tmp.Close()
	os.Remove(f.tmp.Name())
}
