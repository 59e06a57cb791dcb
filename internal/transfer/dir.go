package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// DirSource is what lies in a directory of this machine: the file of a name, or
// if the name is "" all files. Links are followed within the directory only,
// and other users may change what is there meanwhile. The source does not
// close root.
func DirSource(root *os.Root, name string) Source { return &dirSource{root, name} }

type dirSource struct {
	root *os.Root
	name string
}

func (s *dirSource) Close() {}

func (s *dirSource) List(ctx context.Context) ([]Object, error) {
	if s.name != "" {
		o, err := s.object(s.name)
		o.Name = ""
		return []Object{o}, err
	}
	list, err := Walk(ctx, s.root, ".", "")
	if err != nil {
		return nil, err
	}
	var out []Object
	for _, name := range list {
		o, err := s.object(name)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func (s *dirSource) object(name string) (Object, error) {
	f, err := OpenPlain(s.root, name)
	if err != nil {
		return Object{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Object{}, local(err)
	}
	return Object{Name: name, Size: st.Size(), Version: fmt.Sprint(st.ModTime().UnixNano(), "-", st.Size())}, nil
}

func (s *dirSource) Open(_ context.Context, o Object, from, to int64) (io.ReadCloser, error) {
	f, err := OpenPlain(s.root, cmp.Or(s.name, o.Name))
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, from, to-from), f}, nil
}

// OpenPlain opens a plain file below root for reading, and nothing that is
// none: opening a pipe would wait for ever.
func OpenPlain(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileError(name, err)
	}
	st, err := f.Stat()
	if err == nil && st.Mode().IsRegular() {
		return f, nil
	}
	f.Close()
	if err != nil {
		return nil, fileError(name, err)
	}
	return nil, fail(Invalid, "%q is no plain file", name)
}

// fileError is for the user, who does not know this machine's paths.
func fileError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(NotFound, "there is no file %q", name)
	case errors.Is(err, fs.ErrPermission):
		return fail(Denied, "file %q may not be read", name)
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fail(Invalid, "file %q cannot be read: %v", name, err)
}

// Walk lists the plain files below dir whose names there match a pattern, in
// the order of their names. Links, pipes and devices are not among them.
func Walk(ctx context.Context, root *os.Root, dir, pattern string) ([]string, error) {
	var list []string
	err := fs.WalkDir(root.FS(), dir, func(p string, d fs.DirEntry, err error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			return fileError(p, err)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		name := p
		if dir != "." {
			name = strings.TrimPrefix(p, dir+"/")
		}
		if pattern != "" && !match(pattern, name) {
			return nil
		}
		if len(list) >= maxObjects {
			return fail(TooLarge, "has more than %d files", maxObjects)
		}
		list = append(list, name)
		return nil
	})
	return list, err
}

// match says whether a name fits a pattern: part by part as path.Match does,
// and a part ** stands for any number of directories. A pattern of one part
// fits the name's last.
func match(pattern, name string) bool {
	if !strings.Contains(pattern, "/") && pattern != "**" {
		name = path.Base(name)
	}
	return matchParts(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

// matchParts takes time in the product of both lengths: row[j] says whether the
// pattern so far fits the first j parts of the name.
func matchParts(pattern, name []string) bool {
	row := make([]bool, len(name)+1)
	row[0] = true
	for _, p := range pattern {
		next := make([]bool, len(name)+1)
		if p == "**" {
			seen := false
			for j := range row {
				seen = seen || row[j]
				next[j] = seen
			}
		} else {
			for j, part := range name {
				if row[j] {
					next[j+1], _ = path.Match(p, part)
				}
			}
		}
		row = next
	}
	return row[len(name)]
}

// copyName is what a file is called while it is being written.
func copyName(name string) string {
	return filepath.Join(filepath.Dir(name), ".gbatch-"+filepath.Base(name))
}

// isNotDir says that a file is where a directory is needed, or the reverse.
func isNotDir(err error) bool {
	return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY)
}
