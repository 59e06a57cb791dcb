package data

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"

	"gbatch/internal/job"
	"gbatch/internal/noded/storage"
	"gbatch/internal/transfer"
	"gbatch/oci"
)

// OpenWritten opens the directory of a path in a container that has ended, and
// says the name of the file if the path is one.
func (d *Data) OpenWritten(r Rank, p string) (root *os.Root, name string, err error) {
	return (&transfers{d, r}).outputRoot(p)
}

// outputRoot opens the directory of a path in a container that has ended, and
// the name of the file if the path is one. Links that the program made lead
// nowhere but within what it could write.
func (t *transfers) outputRoot(p string) (root *os.Root, name string, err error) {
	top, rest, err := t.outputTop(path.Clean(p))
	if err != nil {
		return nil, "", err
	}
	defer top.Close()
	open := func(p string) (*os.File, error) { return pathrs.OpenatInRoot(top, p) }
	h, err := open(rest)
	if err != nil {
		return nil, "", err
	}
	defer h.Close()
	st, err := h.Stat()
	switch {
	case err != nil:
		return nil, "", err
	case st.IsDir():
		root, err = storage.RootOf(h)
		return root, "", err
	case !st.Mode().IsRegular():
		return nil, "", &nothingToSave{fmt.Sprintf("%s is neither a directory nor a plain file", p)}
	}
	dir, err := open(path.Dir(rest))
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	root, err = storage.RootOf(dir)
	return root, path.Base(rest), err
}

// outputTop opens what of a container is outermost on the way to a path: a
// mount, or what it wrote itself. The rest of the path is relative to that.
func (t *transfers) outputTop(p string) (*os.File, string, error) {
	best, rest := -1, ""
	entries := t.Order.Spec.Request.Docker.Storage
	inputs := t.Order.Spec.Gbatch.Inputs
	length := -1
	consider := func(i int, target string) {
		target = path.Clean(target)
		if below, ok := below(p, target); ok && len(target) > length {
			best, rest, length = i, below, len(target)
		}
	}
	for i, m := range entries {
		consider(i, m.ContainerPath)
	}
	for i, in := range inputs {
		consider(len(entries)+i, in.Path)
	}
	switch {
	case best < 0:
		dir, err := oci.Written(t.Box)
		if err != nil {
			return nil, "", err
		}
		f, err := os.Open(dir)
		return f, p, err
	case best >= len(entries):
		f, err := t.openInput(best-len(entries), &rest)
		return f, rest, err
	case entries[best].HostPath == job.TmpfsHostPath:
		return nil, "", &nothingToSave{fmt.Sprintf("%s was on a tmpfs, which is gone", p)}
	}
	who, err := t.Tenant()
	if err != nil {
		return nil, "", err
	}
	src, err := t.Storage.Open(entries[best], who)
	if err != nil {
		return nil, "", err
	}
	if src.Dir {
		return src.Handle, rest, nil
	}
	src.Close() // a single file was mounted: look at it from its directory
	at := entries[best]
	at.HostPath, rest = path.Dir(at.HostPath), path.Base(at.HostPath)
	src, err = t.Storage.Open(at, who)
	return src.Handle, rest, err
}

// openInput opens an input that the program may have changed.
func (t *transfers) openInput(i int, rest *string) (*os.File, error) {
	if t.Order.Spec.Gbatch.Inputs[i].Cache {
		return nil, &nothingToSave{"the path lies in an input from the cache, which cannot be written to"}
	}
	dir := filepath.Join(t.RankDir(t.ID), strconv.Itoa(i), transfer.ContentDir)
	if *rest == "." && !strings.HasSuffix(t.Order.Spec.Gbatch.Inputs[i].URI, "/") {
		*rest = transfer.SingleName
	}
	return os.Open(dir)
}

// below says where a path lies below a directory; "." is the directory.
func below(p, dir string) (string, bool) {
	if p == dir {
		return ".", true
	}
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
	return rest, ok
}
