package keep

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"

	"gbatch/oci/logs"
)

// Object is a log as one file, to be read and closed.
type Object struct {
	*io.SectionReader
	io.Closer
}

// packed is a log as one file.
func (s *Store) packed(k Key) (*Object, error) {
	w, _, err := s.whole(k)
	if w == nil && err == nil {
		return s.packedDir(k)
	}
	var b bytes.Buffer
	if err == nil {
		err = writeObject(&b, filesOf(w.Files()))
	}
	if err != nil {
		return nil, fmt.Errorf("pack log: %w", err)
	}
	return &Object{io.NewSectionReader(bytes.NewReader(b.Bytes()), 0, int64(b.Len())), io.NopCloser(nil)}, nil
}

// packedDir is packed for a log that has a directory.
func (s *Store) packedDir(k Key) (*Object, error) {
	f, err := os.CreateTemp(s.dir, ".archive-")
	if err != nil {
		return nil, fmt.Errorf("pack log: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		err = writeObject(f, filesIn(filepath.Join(s.dir, k.path())))
	}
	var size int64
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("pack log: %w", err)
	}
	return &Object{io.NewSectionReader(f, 0, size), f}, nil
}

// logFile are the names of the files that a log consists of.
var logFile = regexp.MustCompile(`^([0-9]{20}\.(log|sum)|times)$`)

// filesIn reads the files of a log in a directory.
func filesIn(dir string) iter.Seq2[logs.File, error] {
	return func(yield func(logs.File, error) bool) {
		files, err := os.ReadDir(dir)
		if err != nil {
			yield(logs.File{}, err)
			return
		}
		for _, e := range files {
			if !logFile.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if !yield(logs.File{Name: e.Name(), Data: data}, err) {
				return
			}
		}
	}
}

func filesOf(list []logs.File) iter.Seq2[logs.File, error] {
	return func(yield func(logs.File, error) bool) {
		for _, f := range list {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func writeObject(w io.Writer, files iter.Seq2[logs.File, error]) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for f, err := range files {
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: f.Name, Mode: 0o600, Size: int64(len(f.Data)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := t.Write(f.Data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// Bounds of an object that may be a small log, and of what is in it.
const (
	maxSmallObject = 16 << 10
	maxSmallFiles  = 2 * logs.MaxWhole
)

// readWhole reads an object that has a small log. It gives none, and the object anew, where
// that is another one.
func readWhole(body io.Reader) (*logs.Whole, io.Reader, error) {
	head, err := io.ReadAll(io.LimitReader(body, maxSmallObject))
	if err != nil {
		return nil, nil, err
	}
	again := io.MultiReader(bytes.NewReader(head), body)
	if len(head) == maxSmallObject {
		return nil, again, nil
	}
	var files []logs.File
	err = readObject(bytes.NewReader(head), maxSmallFiles, func(h *tar.Header, r io.Reader) error {
		data, err := io.ReadAll(r)
		files = append(files, logs.File{Name: h.Name, Data: data})
		return err
	})
	if err != nil {
		return nil, again, nil // who reads all of it says what is wrong
	}
	if w, ok := logs.WholeOf(files); ok {
		return &w, nil, nil
	}
	return nil, again, nil
}

// maxArchived bounds a log that is brought back; sites may have had larger bounds
// than now.
const maxArchived = 16 << 30

// unpack puts an object's files into a directory.
func unpack(r io.Reader, dir string, most int64, enough func() error) error {
	return readObject(r, most, func(h *tar.Header, r io.Reader) error {
		if err := enough(); err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, h.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		if err == nil {
			err = f.Sync()
		}
		return errors.Join(err, f.Close())
	})
}

// readObject reads an object, which has the files of a log and nothing else, of so many bytes at most.
func readObject(r io.Reader, most int64, take func(*tar.Header, io.Reader) error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, z) // to the sum at the end of all
			return err
		}
		if err != nil {
			return err
		}
		if most -= h.Size; !logFile.MatchString(h.Name) || h.Typeflag != tar.TypeReg || most < 0 {
			return fmt.Errorf("the archived log has a file %q of %d bytes, which no log has", h.Name, h.Size)
		}
		if err := take(h, t); err != nil {
			return err
		}
	}
}
