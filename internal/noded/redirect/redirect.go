// Package redirect opens the files that a program's output goes to and its input comes from, where a
// job names them.
package redirect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/storage"
	"gbatch/oci/stdio"
)

// Submitit and others name a directory after the job's number and make it once they
// have been told that number, when a node may have got the job already. So what the
// output shall go to is looked for again until it is there or dirWait has passed.
const (
	dirWait  = 10 * time.Second
	dirAgain = 100 * time.Millisecond
)

// errNoDirectory: the file of an output can be made when its directory is there.
var errNoDirectory = errors.New("its directory does not exist")

// Open opens them, again while a directory is missing. They are to be closed, see Close.
func Open(ctx context.Context, roots *storage.Roots, tenant func() (storage.Tenant, error), in job.EnvInput) (stdio.Files, error) {
	return await(ctx, func() (stdio.Files, error) { return open(roots, tenant, in) })
}

// await opens files, again while a directory is missing.
func await(ctx context.Context, open func() (stdio.Files, error)) (stdio.Files, error) {
	for deadline := time.Now().Add(dirWait); ; {
		s, err := open()
		if !errors.Is(err, errNoDirectory) || time.Now().After(deadline) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return stdio.Files{}, context.Cause(ctx)
		case <-time.After(dirAgain):
		}
	}
}

// open opens the files that a program's output goes to and its input comes
// from, as the user: where links lead out of the storage, or to what the user
// may not touch, there is nothing to open. A file that lies on no storage is
// none: its output is in the log alone, as was said when the job was submitted.
func open(roots *storage.Roots, tenant func() (storage.Tenant, error), in job.EnvInput) (s stdio.Files, err error) {
	output, errs, input := job.StdioFiles(in)
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND
	if g := in.Spec.Gbatch; g == nil || g.Stdio == nil || !g.Stdio.Append {
		flags |= unix.O_TRUNC
	}
	for _, f := range []struct {
		what  string
		file  job.StdioFile
		flags int
		to    **os.File
	}{{"output", output, flags, &s.Output}, {"error", errs, flags, &s.Error}, {"input", input, unix.O_RDONLY, &s.Input}} {
		if !f.file.Reached() || f.file.Mount.ReadOnly && f.to != &s.Input {
			continue
		}
		who, err := tenant()
		if err == nil {
			*f.to, err = openIn(roots, who, f.file, f.flags)
		}
		if err != nil {
			Close(s)
			return stdio.Files{}, reasonOf(f.what, f.file.Path, err)
		}
	}
	return s, nil
}

// Close closes them.
func Close(s stdio.Files) {
	for _, f := range []*os.File{s.Output, s.Error, s.Input} {
		if f != nil {
			f.Close()
		}
	}
}

// openIn opens a plain file below a mount.
func openIn(roots *storage.Roots, who storage.Tenant, f job.StdioFile, flags int) (file *os.File, err error) {
	dir, name := path.Split(path.Join(f.Mount.HostPath, f.Rest))
	if f.Rest != "" {
		dir, name = f.Mount.HostPath, f.Rest
	}
	root, err := roots.OpenRoot(dir, who, flags != unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	do := func() (err error) {
		// What is no plain file would hold the daemon up, or is a device.
		file, err = root.OpenFile(name, flags&^unix.O_TRUNC|unix.O_NONBLOCK|unix.O_NOCTTY, 0o644)
		return err
	}
	if err := who.Rights.Reach(root, name, do); err != nil {
		return nil, err
	}
	st, err := file.Stat()
	switch {
	case err != nil:
	case st.IsDir():
		err = unix.EISDIR
	case !st.Mode().IsRegular():
		err = errors.New("it is no plain file")
	case flags&unix.O_TRUNC != 0:
		err = who.Rights.Do(func() error { return file.Truncate(0) })
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func reasonOf(what, name string, err error) error {
	if _, ok := errors.AsType[*reason.Error](err); ok {
		return err
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	switch {
	case errors.Is(err, os.ErrNotExist) && what == "input":
		return reason.Errorf(job.Mount, "cannot open the file for the program's input, %s: it does not exist", name)
	case errors.Is(err, os.ErrNotExist):
		return reason.Because(job.Mount, fmt.Errorf("cannot open the file for the program's %s, %s: %w", what, name, errNoDirectory))
	case errors.Is(err, os.ErrPermission):
		return reason.Errorf(job.Mount, "cannot open the file for the program's %s, %s: its user may not", what, name)
	}
	return reason.Errorf(job.Mount, "cannot open the file for the program's %s, %s: %v", what, name, err)
}
