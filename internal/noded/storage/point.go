package storage

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
)

// base is a place of ours that shows a tenant's storage, and on which more is mounted
// than that. Root of a container may not pass each directory of a project's, as the
// kernel does not know the project's group there: so the node puts it together.
type base struct {
	place string // see Bind
	name  string // of what it shows, as the job has it
	who   Tenant
}

// begin keeps what is mounted on the place from showing up where the storage lies, and
// makes what it shows read-only where the job may only read that.
func (b base) begin(readOnly bool) error {
	return unix.MountSetattr(unix.AT_FDCWD, b.place, unix.AT_RECURSIVE, attr(readOnly))
}

// attr is what holds for all that jobs see of the host, see draft.Bind.
func attr(readOnly bool) *unix.MountAttr {
	a := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_SLAVE}
	if readOnly {
		a.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return a
}

// mount mounts a directory or a file of ours below the place. What is missing there is
// made with the tenant's rights and stays: a directory, or an empty file. No link leads
// out of the place.
func (b base) mount(rel, from string, readOnly bool) error {
	st, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("mount below storage: %w", err)
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("mount below storage: %w", err)
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr(readOnly)); err != nil {
		return fmt.Errorf("mount below storage: %w", err)
	}
	at, err := b.point(rel, st.IsDir())
	if err == nil {
		err = unix.MoveMount(tree, "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
		at.Close()
	}
	if err != nil {
		return b.explain(rel, err)
	}
	return nil
}

// point opens a name below the place, and makes it where it is missing.
func (b base) point(rel string, dir bool) (h *os.File, err error) {
	top, err := openAt(unix.AT_FDCWD, b.place, unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	root, err := RootOf(top, b.who.Rights)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(top.Fd()), &st); err != nil {
		return nil, err
	}
	m := b.who.maker(st.Mode & 0o7777)
	err = b.who.Rights.Reach(root, rel, func() (err error) {
		if dir {
			h, err = m.resolve(top, rel, true)
		} else {
			h, err = m.file(top, rel)
		}
		return err
	})
	return h, err
}

// file opens a file below a directory as a handle, and makes an empty one with its
// directories if there is none.
func (m maker) file(top *os.File, rel string) (*os.File, error) {
	h, err := beneath(top, rel)
	if !errors.Is(err, unix.ENOENT) {
		return h, err
	}
	in := top
	if dir := path.Dir(rel); dir != "." {
		if in, err = m.resolve(top, dir, true); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	fd, err := unix.Openat(int(in.Fd()), path.Base(rel), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = errors.Join(unix.Fchown(fd, m.uid, m.gid), unix.Fchmod(fd, m.mode&0o666), unix.Close(fd))
	}
	if err != nil && !errors.Is(err, unix.EEXIST) { // another rank may make it at the same time
		return nil, err
	}
	return beneath(top, rel)
}

func (b base) explain(rel string, err error) error {
	what := "something is in the way: " + plain(err).Error()
	switch {
	case errors.Is(err, unix.EROFS):
		what = "it can only be read and has nothing there; make that first"
	case errors.Is(err, os.ErrPermission):
		what = fmt.Sprintf("user %s may not reach it or make it; make it first", b.who.User)
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.ELOOP):
		what = "a symbolic link leads out of the storage"
	case errors.Is(err, unix.ENOENT):
		what = "a symbolic link points to nothing"
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EINVAL):
		what = "a file is where a directory is to be, or the other way round"
	}
	return reason.Errorf(job.Mount, "cannot mount on %s in storage %q: %s", strconv.Quote(rel), b.name, what)
}
