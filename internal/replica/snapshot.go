package replica

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/raft"
)

// snapshot is a copy of a store that is being sent or kept, as a tar archive of its files.
type snapshot struct{ dir string }

// Persist writes the copy.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := packStore(sink, s.dir); err != nil {
		return errors.Join(fmt.Errorf("copy the store: %w", err), sink.Cancel())
	}
	return sink.Close()
}

// Release removes it.
func (s snapshot) Release() { _ = os.RemoveAll(s.dir) } // what stays is removed before the next one

func packStore(w io.Writer, dir string) error {
	t := tar.NewWriter(w)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := packFile(t, filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return t.Close()
}

func packFile(t *tar.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.IsDir() {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: 0o600, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// unpackStore is the inverse of packStore. What comes is of another controller, and yet no name
// may lead out of the directory.
func unpackStore(r io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return syncDir(dir)
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || h.Name != filepath.Base(h.Name) || h.Name == ".." || sparse(h) {
			return fmt.Errorf("it holds %q, which no store does", h.Name)
		}
		f, err := os.OpenFile(filepath.Join(dir, h.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, t)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
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

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
