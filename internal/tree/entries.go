package tree

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
)

// Size is what a tree has in it.
type Size struct {
	Files int64 // entries of all kinds
	Bytes int64 // of its files
}

// Entries reads an archive that anybody may have made, and calls each with what
// is in it: directories, files and links within the tree, each once, after the
// directory that it is in. Anything else is an error, and so is more than most.
func Entries(r io.Reader, most Size, each func(h *tar.Header, body io.Reader) error) (Size, error) {
	var got Size
	var o order
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return got, ended(r)
		}
		if err != nil {
			return got, fmt.Errorf("read the tree: %w", err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if err := checkEntry(name, h); err != nil {
			return got, err
		}
		if err := o.next(name, h.Typeflag == tar.TypeDir); err != nil {
			return got, err
		}
		if h.Typeflag != tar.TypeReg { // a header may say a size that nothing follows
			h.Size = 0
		}
		if got.Files++; got.Files > most.Files {
			return got, fmt.Errorf("it has more than %d files and directories", most.Files)
		}
		if got.Bytes += h.Size; got.Bytes > most.Bytes {
			return got, fmt.Errorf("its files have more than %d MiB", most.Bytes>>20)
		}
		h.Name = name
		if err := each(h, t); err != nil {
			return got, err
		}
	}
}

// ended refuses what stands behind an archive's end, where nobody would count it.
func ended(r io.Reader) error {
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return errors.New("something is behind the end of the tree")
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read the tree: %w", err)
	}
	return nil
}

// paxKeys are the records that plain entries need: what is too long for a tar's
// own fields.
var paxKeys = map[string]bool{"path": true, "linkpath": true, "size": true}

func checkEntry(name string, h *tar.Header) error {
	if err := checkName(name); err != nil {
		return err
	}
	if h.Mode&^0o777 != 0 {
		return fmt.Errorf("%q has set-id bits or others beside permissions", name)
	}
	for key := range h.PAXRecords {
		if !paxKeys[key] {
			return fmt.Errorf("%q has the attribute %.100q, which a tree has not", name, key)
		}
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
		return nil
	case tar.TypeSymlink:
		return checkLink(name, h.Linkname)
	}
	return fmt.Errorf("%q is neither a file nor a directory nor a symbolic link", name)
}

func checkName(name string) error {
	if name == "" || name == "." || len(name) > 4095 || strings.ContainsRune(name, 0) || !filepath.IsLocal(name) || path.Clean(name) != name {
		return fmt.Errorf("%.200q is no name below a directory", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 255 {
			return fmt.Errorf("%.200q has a name that no file can have", name)
		}
	}
	return nil
}

// checkLink refuses links that lead out of the tree. With dots at its front
// alone, and all directories real ones, a link leads where its text says.
func checkLink(name, target string) error {
	if target == "" || len(target) > 4095 || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return fmt.Errorf("%q is a link to %.200q, which is not in the tree", name, target)
	}
	if to := path.Join(path.Dir(name), target); to != "." && !filepath.IsLocal(to) || path.Clean(target) != strings.TrimSuffix(target, "/") {
		return fmt.Errorf("%q is a link to %.200q, which leads out of the tree or is not written plainly", name, target)
	}
	return nil
}

// order checks that each entry comes once, in the order of a walk, and after
// its directory.
type order struct {
	last string
	dirs []string // in which the last entry is, and itself if it is one
}

func (o *order) next(name string, isDir bool) error {
	key := strings.ReplaceAll(name, "/", "\x00") // a walk goes through a directory before the next name, whatever that begins with
	if key <= o.last && o.last != "" {
		return fmt.Errorf("%q is there twice, or not at its place", name)
	}
	o.last = key
	dir := path.Dir(name)
	for len(o.dirs) > 0 && o.dirs[len(o.dirs)-1] != dir {
		o.dirs = o.dirs[:len(o.dirs)-1]
	}
	if dir != "." && len(o.dirs) == 0 {
		return fmt.Errorf("%q is in no directory of the tree", name)
	}
	if isDir {
		o.dirs = append(o.dirs, name)
	}
	return nil
}
