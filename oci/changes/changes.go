// Package changes writes what a container has changed of its image as a layer of
// an image: a tar archive with whiteouts for what is gone, and owners by the
// container's ids. It reads what the container wrote, which may be anything, and
// follows no link. Nothing may write there meanwhile. It owns nothing.
package changes

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/oci/userns"
)

// Container is what there is to write.
type Container struct {
	Upper string     // the directory over the image's layers, as overlayfs writes it
	IDs   userns.Map // the container's
	Skip  []string   // absolute paths in the container, which are left out with all below them: they are mounts, or were made for it
}

// Errors that say what cannot be part of an image.
var (
	ErrTooLarge = errors.New("what the container wrote is too large")
	errMoved    = errors.New("a directory of the image was moved, which the node's kernel notes in a way that images do not have; copy it instead")
	errNamed    = errors.New("its name is one by which images say that a file is gone")
	errNested   = errors.New("directories are nested too deeply")
)

// The bounds of what is remembered while it is written.
const (
	maxLinked = 1 << 18 // files with several names
	maxDepth  = 2000    // directories within directories
)

// Write writes the layer. The contents of files are maxBytes together at most.
func (c Container) Write(ctx context.Context, to io.Writer, maxBytes int64) error {
	root, err := os.OpenRoot(c.Upper)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &writer{ctx: ctx, c: c, root: root, to: tar.NewWriter(to), left: maxBytes, names: map[inode]string{}}
	if err := w.dir(root, "", 0); err != nil {
		return err
	}
	return w.to.Close()
}

type inode struct{ dev, ino uint64 }

type writer struct {
	ctx   context.Context
	c     Container
	root  *os.Root
	to    *tar.Writer
	left  int64
	names map[inode]string // the first name of a file that has several
}

// dir writes what is in a directory, by name.
func (w *writer) dir(dir *os.Root, at string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("/%s: %w", at, errNested)
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	f.Close()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := w.entry(dir, path.Join(at, name), depth); err != nil {
			return err
		}
	}
	return nil
}

// whiteout begins the name that says that a file of the image is gone; opaque is
// in a directory of which nothing of the image is left.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// entry writes one file or directory, with all in it.
func (w *writer) entry(dir *os.Root, at string, depth int) error {
	name := path.Base(at)
	if slices.Contains(w.c.Skip, "/"+at) {
		return nil
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return hide(at, err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0 {
		return w.to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(path.Dir(at), whiteout+name)})
	}
	if strings.HasPrefix(name, whiteout) {
		return fmt.Errorf("/%s: %w", at, errNamed)
	}
	h, err := w.header(dir, at, info)
	if err != nil || h == nil {
		return err
	}
	switch {
	case info.IsDir():
		return w.sub(dir, h, depth)
	case info.Mode().IsRegular():
		return w.file(dir, h, st)
	}
	return w.to.WriteHeader(h)
}

// header says what a file is; nil: it has no place in an image.
func (w *writer) header(dir *os.Root, at string, info fs.FileInfo) (*tar.Header, error) {
	var to string
	switch info.Mode().Type() {
	case 0, fs.ModeDir, fs.ModeNamedPipe:
	case fs.ModeSymlink:
		var err error
		if to, err = dir.Readlink(path.Base(at)); err != nil {
			return nil, hide(at, err)
		}
	default: // sockets, whose programs are not there; devices, which containers do not make
		return nil, nil
	}
	h, err := tar.FileInfoHeader(info, to)
	if err != nil {
		return nil, hide(at, err)
	}
	st := info.Sys().(*syscall.Stat_t)
	h.Name, h.Format, h.Uname, h.Gname = at, tar.FormatPAX, "", ""
	h.Uid, h.Gid = w.c.IDs.Inside(st.Uid, st.Gid)
	if info.IsDir() {
		h.Name += "/"
	}
	return h, nil
}

func (w *writer) sub(dir *os.Root, h *tar.Header, depth int) error {
	name := path.Base(h.Name)
	at := strings.TrimSuffix(h.Name, "/")
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return hide(at, err)
	}
	defer sub.Close()
	f, err := sub.Open(".")
	if err != nil {
		return hide(at, err)
	}
	marks, err := attributes(f, h)
	f.Close()
	if err == nil && marks.moved {
		err = errMoved
	}
	if err != nil {
		return hide(at, err)
	}
	if err := w.to.WriteHeader(h); err != nil {
		return err
	}
	if marks.opaque {
		if err := w.to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(at, opaque)}); err != nil {
			return err
		}
	}
	return w.dir(sub, at, depth+1)
}

func (w *writer) file(dir *os.Root, h *tar.Header, st *syscall.Stat_t) error {
	id := inode{st.Dev, st.Ino}
	if first, again := w.names[id]; again {
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		return w.to.WriteHeader(h)
	}
	if st.Nlink > 1 {
		if len(w.names) >= maxLinked {
			return fmt.Errorf("%w: more than %d files have several names", ErrTooLarge, maxLinked)
		}
		w.names[id] = h.Name
	}
	if w.left -= h.Size; w.left < 0 {
		return ErrTooLarge
	}
	f, err := dir.OpenFile(path.Base(h.Name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return hide(h.Name, err)
	}
	defer f.Close()
	marks, err := attributes(f, h)
	if err == nil && marks.elsewhere {
		err = errMoved
	}
	if err != nil {
		return hide(h.Name, err)
	}
	if err := w.to.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(w.to, io.LimitReader(&interrupted{w.ctx, f}, h.Size))
	if err == nil && n < h.Size {
		err = fmt.Errorf("/%s: it became shorter meanwhile", h.Name)
	}
	return err
}

// interrupted is a file that ends with the work.
type interrupted struct {
	ctx context.Context
	f   *os.File
}

func (r *interrupted) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}

// marks are what overlayfs notes of a file.
type marks struct{ opaque, moved, elsewhere bool }

// attributes reads the marks, and takes the user's attributes into the header.
func attributes(f *os.File, h *tar.Header) (m marks, err error) {
	list := make([]byte, 64<<10) // the kernel's bound
	n, err := unix.Flistxattr(int(f.Fd()), list)
	if errors.Is(err, unix.ENOTSUP) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
		switch {
		case name == "trusted.overlay.redirect":
			m.moved = true
		case name == "trusted.overlay.metacopy":
			m.elsewhere = true
		case name == "trusted.overlay.opaque":
			m.opaque = true
		case strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay."):
			value := make([]byte, 64<<10) // the same
			n, err := unix.Fgetxattr(int(f.Fd()), name, value)
			if err != nil {
				return m, err
			}
			if h.PAXRecords == nil {
				h.PAXRecords = map[string]string{}
			}
			h.PAXRecords["SCHILY.xattr."+name] = string(value[:n])
		}
	}
	return m, nil
}

// hide says which file of the container it is, without the host's path.
func hide(at string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("/%s: %w", at, err)
}
