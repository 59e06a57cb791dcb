package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"

	"gbatch/internal/job"
	"gbatch/internal/noded/rights"
	"gbatch/internal/noded/storage"
	"gbatch/internal/transfer"
	"gbatch/oci"
)

// OpenWritten opens the directory of a path in a container that has ended, and
// says the name of the file if the path is one.
func (d *Data) OpenWritten(r Rank, p string) (dir transfer.Dir, name string, err error) {
	return (&transfers{d, r}).outputDir(p)
}

// outputDir opens the directory of a path in a container that has ended, and
// the name of the file if the path is one. Links that the program made lead
// nowhere but within what it could write.
func (t *transfers) outputDir(p string) (dir transfer.Dir, name string, err error) {
	top, rest, as, err := t.outputTop(path.Clean(p))
	if err != nil {
		return dir, "", err
	}
	defer top.Close()
	below, err := storage.RootOf(top, as)
	if err != nil {
		return dir, "", err
	}
	defer below.Close()
	var h *os.File
	err = as.Reach(below, rest, func() error {
		h, name, err = dirOf(top, rest, p)
		return err
	})
	if errors.Is(err, fs.ErrPermission) {
		return dir, "", transfer.At(transfer.Denied, "", fmt.Sprintf("%s may not be read by the job's user", p))
	}
	if err != nil {
		return dir, "", err
	}
	defer h.Close()
	dir.Rights = as
	dir.Root, err = storage.RootOf(h, as)
	return dir, name, err
}

// dirOf opens the directory of a path below top, which p is the whole of.
func dirOf(top *os.File, rest, p string) (h *os.File, name string, err error) {
	h, err = pathrs.OpenatInRoot(top, rest)
	if err != nil {
		return nil, "", err
	}
	st, err := h.Stat()
	if err == nil && st.IsDir() {
		return h, "", nil
	}
	h.Close()
	if err != nil {
		return nil, "", err
	}
	if !st.Mode().IsRegular() {
		return nil, "", &nothingToSave{fmt.Sprintf("%s is neither a directory nor a plain file", p)}
	}
	h, err = pathrs.OpenatInRoot(top, path.Dir(rest))
	return h, path.Base(rest), err
}

// outputTop opens what of a container is outermost on the way to a path: a
// mount, or what it wrote itself. The rest of the path is relative to that. What
// lies in the daemon's own directories holds nothing but what the container
// wrote and was brought for it.
func (t *transfers) outputTop(p string) (top *os.File, rest string, as rights.Rights, err error) {
	best := -1
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
		dir, err := oci.Written(t.ContainerDir)
		if err != nil {
			return nil, "", as, err
		}
		top, err = os.Open(dir)
		return top, p, rights.Daemon(), err
	case best >= len(entries):
		top, err = t.openInput(best-len(entries), &rest)
		return top, rest, rights.Daemon(), err
	case entries[best].HostPath == job.TmpfsHostPath:
		return nil, "", as, &nothingToSave{fmt.Sprintf("%s was on a tmpfs, which is gone", p)}
	case entries[best].HostPath == job.ScratchHostPath:
		return t.openVolume(entries[best], rest)
	}
	who, err := t.Tenant()
	if err != nil {
		return nil, "", as, err
	}
	src, err := t.Storage.Open(entries[best], who)
	if err != nil {
		return nil, "", as, err
	}
	if src.Dir {
		return src.Handle, rest, who.Rights, nil
	}
	src.Close() // a single file was mounted: look at it from its directory
	at := entries[best]
	at.HostPath, rest = path.Dir(at.HostPath), path.Base(at.HostPath)
	src, err = t.Storage.Open(at, who)
	return src.Handle, rest, who.Rights, err
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

// openVolume opens one of the rank's own directories, and says what of it a mount shows.
func (t *transfers) openVolume(m job.Storage, rest string) (top *os.File, below string, as rights.Rights, err error) {
	if m.OfMemory {
		return nil, "", as, &nothingToSave{fmt.Sprintf("%s was in memory, which is gone", m.ContainerPath)}
	}
	written, err := oci.Written(t.ContainerDir)
	if err != nil {
		return nil, "", as, err
	}
	top, err = os.Open(storage.Volume(filepath.Dir(written), m.Volume))
	return top, path.Join(m.SubPath, rest), rights.Daemon(), err
}
