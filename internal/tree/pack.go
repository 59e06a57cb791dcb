package tree

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrChanged says that a directory was changed while it was packed.
var ErrChanged = errors.New("it was changed while it was read")

// Packing is how a directory is made a tree.
type Packing struct {
	Dir  string // or a single file, which becomes a tree of that file
	Skip func(name string, isDir bool) bool
	Most Size
	// Emit is given each chunk, in order, and may use its bytes until it returns.
	Emit func(c Chunk, data []byte) error
}

// Pack makes a tree of a directory.
func (p Packing) Pack(ctx context.Context) (Manifest, Size, error) {
	w := &packing{Packing: p, copy: make([]byte, 64<<10)}
	w.cut = cutter{emit: p.Emit}
	w.tar = tar.NewWriter(&w.cut)
	err := filepath.WalkDir(p.Dir, func(file string, d fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		return w.add(file, d)
	})
	if err == nil {
		err = errors.Join(w.tar.Close(), w.cut.flush())
	}
	if err != nil {
		return Manifest{}, w.got, fmt.Errorf("pack %s: %w", p.Dir, err)
	}
	return Manifest{w.cut.chunks}, w.got, nil
}

type packing struct {
	Packing
	tar  *tar.Writer
	cut  cutter
	copy []byte
	got  Size
}

// add puts one file or directory into the archive.
func (w *packing) add(file string, d fs.DirEntry) error {
	name, err := filepath.Rel(w.Dir, file)
	if err != nil {
		return err
	}
	if name = filepath.ToSlash(name); name == "." {
		if d.IsDir() {
			return nil
		}
		name = filepath.Base(file)
	} else if w.Skip != nil && w.Skip(name, d.IsDir()) {
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return ErrChanged
	}
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: permissions(info.Mode()), Format: tar.FormatPAX}
	switch mode := info.Mode(); {
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 && !mode.IsDir():
		return fmt.Errorf("%s is set-user-id or set-group-id: chmod ug-s it, or name it in .gbatchignore", file)
	case mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case mode.IsRegular():
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
	case mode&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		h.Mode = 0o777
		if h.Linkname, err = os.Readlink(file); err != nil {
			return err
		}
		if plain := path.Clean(h.Linkname); strings.Count(plain, "..") == strings.Count(h.Linkname, "..") { // "./x" is "x"; "x/.." is whatever x says
			h.Linkname = plain
		}
	default:
		return fmt.Errorf("%s is neither a file nor a directory nor a link: name it in .gbatchignore", file)
	}
	if err := checkEntry(name, h); err != nil {
		return fmt.Errorf("%w: name it in .gbatchignore, or change it", err)
	}
	return w.write(file, h)
}

func (w *packing) write(file string, h *tar.Header) error {
	w.got.Files++
	w.got.Bytes += h.Size
	if w.got.Files > w.Most.Files || w.got.Bytes > w.Most.Bytes {
		return fmt.Errorf("it has more than %d files or %d MiB: name what jobs do not need in .gbatchignore", w.Most.Files, w.Most.Bytes>>20)
	}
	if begins(h.Name) {
		if err := w.tar.Flush(); err != nil {
			return err
		}
		if err := w.cut.flush(); err != nil {
			return err
		}
	}
	if err := w.tar.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{w.tar}, struct{ io.Reader }{io.LimitReader(f, h.Size)}, w.copy)
	if err == nil && n != h.Size {
		err = ErrChanged
	}
	return err
}

// begins says whether a chunk begins at an entry. It goes by the name alone, so
// that what is added or changed elsewhere moves no border.
func begins(name string) bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, name) // it cannot fail
	return h.Sum32()%64 == 0
}

// cutter makes chunks of what is written.
type cutter struct {
	buf    []byte
	emit   func(Chunk, []byte) error
	chunks []Chunk
}

func (c *cutter) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		n := min(len(p), MaxChunk-len(c.buf))
		c.buf, p = append(c.buf, p[:n]...), p[n:]
		if len(c.buf) == MaxChunk {
			if err := c.flush(); err != nil {
				return all - len(p), err
			}
		}
	}
	return all, nil
}

func (c *cutter) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	chunk := Chunk{SumOf(c.buf), int64(len(c.buf))}
	c.chunks = append(c.chunks, chunk)
	err := c.emit(chunk, c.buf)
	c.buf = c.buf[:0]
	return err
}

// permissions are those of a mode that a tree keeps.
func permissions(m fs.FileMode) int64 { return int64(m.Perm()) }
