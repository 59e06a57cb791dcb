package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Rights are with whose rights something is done to files: see package rights
// of the node daemon. What is done begins no goroutine that works on files.
type Rights interface {
	Do(do func() error) error
	// Reach is Do for the file of a name below a root. It may call do twice.
	Reach(root *os.Root, name string, do func() error) error
}

// Dir is a directory of this machine, and with whose rights it is worked in.
// Links are followed within the directory only, and other users may change
// what is there meanwhile.
type Dir struct {
	Root   *os.Root
	Rights Rights // nil: this process's own
}

func (d Dir) reach(name string, do func() error) error {
	if d.Rights == nil {
		return do()
	}
	return d.Rights.Reach(d.Root, name, do)
}

// DirSource is what lies in a directory of this machine: the file of a name, or
// if the name is "" all files. The source does not close the directory.
func DirSource(dir Dir, name string) Source { return &dirSource{dir, name} }

type dirSource struct {
	dir  Dir
	name string
}

func (s *dirSource) Close() {}

func (s *dirSource) List(ctx context.Context) ([]Object, error) {
	if s.name != "" {
		o, err := s.dir.object(s.name)
		o.Name = ""
		return []Object{o}, err
	}
	list, err := s.dir.Walk(ctx, "")
	if err != nil {
		return nil, err
	}
	var out []Object
	for _, name := range list {
		o, err := s.dir.object(name)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// object describes a file that may be read. Its version is of this file alone:
// nobody can make another one that has it.
func (d Dir) object(name string) (Object, error) {
	f, err := d.Open(name)
	if err != nil {
		return Object{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Object{}, local(err)
	}
	o := Object{Name: name, Size: st.Size()}
	if i, ok := st.Sys().(*syscall.Stat_t); ok {
		o.Version = fmt.Sprint(i.Dev, "-", i.Ino, "-", i.Ctim.Nano(), "-", i.Mtim.Nano(), "-", st.Size())
	}
	return o, nil
}

func (s *dirSource) Open(_ context.Context, o Object, from, to int64) (io.ReadCloser, error) {
	f, err := s.dir.Open(cmp.Or(s.name, o.Name))
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, from, to-from), f}, nil
}

// Open opens a plain file for reading, and nothing that is none: opening a pipe
// would wait for ever.
func (d Dir) Open(name string) (*os.File, error) {
	var f *os.File
	err := d.reach(name, func() (err error) {
		f, err = d.Root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		return err
	})
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
func fileError(name string, err error) error { return fileErrorOf("read", name, err) }

func fileErrorOf(done, name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(NotFound, "there is no file %q", name)
	case errors.Is(err, fs.ErrPermission):
		return fail(Denied, "file %q may not be %s by the job's user", name, done)
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	} else if le, ok := errors.AsType[*os.LinkError](err); ok {
		err = le.Err
	}
	return fail(Invalid, "file %q cannot be %s: %v", name, done, err)
}
