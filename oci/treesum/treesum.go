// Package treesum makes one short sum of a directory and all that is in it: names, kinds, owners, modes,
// times, links, attributes and bytes. By it can be seen later whether the disk has changed any of that.
// It is made against accidents, not against people. It changes nothing and keeps nothing.
package treesum

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// How a tree is read.
type How struct {
	// Disk reads files from the disk itself, where the file system can: what the kernel has of them in
	// memory proves nothing, and is not driven out.
	Disk bool
	// Pace, if set, is told how many bytes were read, again and again. It may wait; its error ends the work.
	Pace func(bytes int64) error
}

// perEntry is about what the disk reads for a name and its attributes.
const perEntry = 1 << 10

// Of is the sum of the tree below dir, which nobody changes meanwhile. No link is followed.
func Of(dir string, how How) (string, error) {
	fd, err := open(unix.AT_FDCWD, dir, unix.O_DIRECTORY)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", dir, err)
	}
	defer unix.Close(fd)
	buf, err := unix.Mmap(-1, 0, bufferSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", dir, err)
	}
	defer unix.Munmap(buf)
	w := &walk{how: how, sum: sha256.New(), buf: buf, linked: map[uint64]string{}}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", fmt.Errorf("read %s: %w", dir, err)
	}
	if err := w.directory(fd, ".", &st); err != nil {
		return "", fmt.Errorf("read %s: %w", dir, err)
	}
	return hex.EncodeToString(w.sum.Sum(nil)), nil
}

// Broken says of an error of Of that it is what a damaged disk or tree gives, and not what a machine
// gives that is short of something.
func Broken(err error) bool {
	errno, ok := errors.AsType[unix.Errno](err)
	return ok && slices.Contains([]unix.Errno{unix.EIO, unix.EUCLEAN, unix.EBADMSG, unix.ENODATA, unix.EILSEQ, unix.ENOENT, unix.ENOTDIR, unix.ELOOP}, errno)
}

type walk struct {
	how    How
	sum    hash.Hash
	buf    []byte            // for the bytes of files, aligned as the disk may want it
	linked map[uint64]string // what files that have several names hold, by inode
}

func (w *walk) pace(n int64) error {
	if w.how.Pace == nil {
		return nil
	}
	return w.how.Pace(n)
}

// directory takes in an open directory, and what is in it in the order of names.
func (w *walk) directory(fd int, at string, st *unix.Stat_t) error {
	attrs, err := attributes(fd)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	names, err := list(fd)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	w.entry(st, "", attrs)
	for _, name := range names {
		if err := w.pace(perEntry); err != nil {
			return err
		}
		fmt.Fprintf(w.sum, "%q ", name)
		if err := w.one(fd, name, path.Join(at, name)); err != nil {
			return err
		}
	}
	fmt.Fprintln(w.sum, "end")
	return nil
}

// one takes in what has a name in an open directory.
func (w *walk) one(dir int, name, at string) error {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	var holds string
	var attrs []byte
	if err == nil {
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			var fd int
			if fd, err = open(dir, name, unix.O_DIRECTORY); err == nil {
				defer unix.Close(fd)
				return w.directory(fd, at, &st)
			}
		case unix.S_IFREG:
			holds, attrs, err = w.file(dir, name, &st)
		case unix.S_IFLNK:
			target := make([]byte, unix.PathMax)
			var n int
			n, err = unix.Readlinkat(dir, name, target)
			holds = string(target[:max(n, 0)])
		default:
			holds = fmt.Sprint(st.Rdev)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	w.entry(&st, holds, attrs)
	return nil
}

// entry takes in what is known of a file: times to the second, as not every file system keeps more.
func (w *walk) entry(st *unix.Stat_t, holds string, attrs []byte) {
	fmt.Fprintf(w.sum, "%o %d %d %d %q %q\n", st.Mode, st.Uid, st.Gid, st.Mtim.Sec, holds, attrs)
}

// kept says whether an attribute is the tree's own. Others are the machine's, as the labels of
// its security modules, and may change.
func kept(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "trusted.overlay.") ||
		name == "security.capability" || strings.HasPrefix(name, "system.posix_acl_")
}

// attributes are those of an open file, in the order of their names.
func attributes(fd int) ([]byte, error) {
	size, err := unix.Flistxattr(fd, nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text := make([]byte, size)
	if size, err = unix.Flistxattr(fd, text); err != nil {
		return nil, err
	}
	var all bytes.Buffer
	names := strings.Split(strings.TrimSuffix(string(text[:size]), "\x00"), "\x00")
	slices.Sort(names)
	for _, name := range names {
		if !kept(name) {
			continue
		}
		value := make([]byte, 64<<10) // as much as the kernel takes
		n, err := unix.Fgetxattr(fd, name, value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&all, "%s=%x ", name, value[:n])
	}
	return all.Bytes(), nil
}
