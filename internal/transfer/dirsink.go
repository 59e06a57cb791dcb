package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/internal/sparse"
)

// DirSink is a directory of this machine. Files belong to whose rights the
// directory is worked in with, and have the group that it gives; parts that
// were never written in the source are not written. single is the name of a
// file that goes alone. The sink does not close the directory.
func DirSink(dir Dir, single string) Sink { return dirSink{dir, single} }

type dirSink struct {
	dir    Dir
	single string
}

func (s dirSink) Close() {}

func (s dirSink) Put(ctx context.Context, w *sending, f *os.File, o Object, _ *journal) error {
	name := cmp.Or(o.Name, s.single)
	return w.request(ctx, func(ctx context.Context, count wrapper) error {
		err := s.dir.reach(name, func() error { return s.write(ctx, name, copying{f, o.Size, count}) })
		if _, known := errors.AsType[*Error](err); known || err == nil || ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		return fileErrorOf("written", name, err)
	})
}

// write puts a copy in the place of a file.
func (s dirSink) write(ctx context.Context, name string, c copying) error {
	if dir := filepath.Dir(name); dir != "." {
		if err := s.dir.Root.MkdirAll(dir, 0o775); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	temp := copyName(name)
	if err := s.dir.Root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := s.dir.Root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(c.to(ctx, out), out.Close())
	if err == nil {
		err = s.dir.Root.Rename(temp, name)
	}
	if err != nil {
		_ = s.dir.Root.Remove(temp) // the first error counts
	}
	return err
}

// copying is a file that is being copied.
type copying struct {
	from  *os.File
	size  int64
	count wrapper
}

// to writes the copy so that it stays, with the mode that the file has.
func (c copying) to(ctx context.Context, out *os.File) error {
	st, err := c.from.Stat()
	if err != nil {
		return err
	}
	if err := c.fits(st, out); err != nil {
		return err
	}
	for from, until := range sparse.Written(c.from, c.size) {
		in := readUntil(ctx, c.count(io.NewSectionReader(c.from, from, until-from)))
		if _, err := io.Copy(io.NewOffsetWriter(out, from), in); err != nil {
			return err
		}
	}
	return errors.Join(out.Truncate(c.size), out.Chmod(st.Mode().Perm()), out.Sync())
}

// fits asks the file system for room. A copy may become larger where the
// source is compressed; then the disk is full when it is.
func (c copying) fits(st os.FileInfo, out *os.File) error {
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(out.Fd()), &disk); err != nil {
		return err
	}
	need := c.size
	if i, ok := st.Sys().(*syscall.Stat_t); ok {
		need = min(need, i.Blocks*512)
	}
	if room := int64(disk.Bavail) * disk.Bsize; need > room {
		return fail(TooLarge, "needs %d MiB, and the storage has %d MiB free", need>>20, room>>20)
	}
	return nil
}

// readUntil ends with a context.
func readUntil(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// copyName is what a file is called while it is being written.
func copyName(name string) string {
	return filepath.Join(filepath.Dir(name), ".gbatch-"+filepath.Base(name))
}
