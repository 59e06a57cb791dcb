package annex

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"gbatch/oci/failure"
)

// Who is whose rights count, by the host's ids.
type Who struct {
	UID, GID int
	Groups   []int
}

// Open opens what mounts are to show: what a container's user sees in the container with
// the first process pid. Each is a copy of the mounts from there on that is nowhere to be
// seen. With all that is mounted below: what the container hides of its files stays hidden.
func Open(pid int, who Who, list []Bind) (trees []*os.File, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	done := make(chan struct{})
	go func() { // awaited here; its thread, which has other mounts and rights, goes with it
		defer close(done)
		runtime.LockOSThread()
		if err = enter(ns, who); err != nil {
			err = fmt.Errorf("look into the container: %w", err)
			return
		}
		for _, b := range list {
			var tree *os.File
			if tree, err = open(b); err != nil {
				return
			}
			trees = append(trees, tree)
		}
	}()
	<-done
	if err != nil {
		Close(trees)
		return nil, err
	}
	return trees, nil
}

// Close closes what Open opened.
func Close(trees []*os.File) {
	for _, t := range trees {
		t.Close()
	}
}

// enter gives this thread a container's mounts and a user's rights: it is allowed to mount,
// but not to pass where the user may not.
func enter(ns *os.File, who Who) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
		return err
	}
	groups := make([]uint32, len(who.Groups))
	for i, g := range who.Groups {
		groups[i] = uint32(g)
	}
	if err := setGroups(groups); err != nil {
		return err
	}
	// Neither says whether it did: the ids are those of before, and asked for by none.
	for _, set := range []struct {
		id int
		to func(int) (int, error)
	}{{who.GID, unix.SetfsgidRetGid}, {who.UID, unix.SetfsuidRetUid}} {
		_, _ = set.to(set.id)
		if is, err := set.to(-1); err != nil || is != set.id {
			return errors.New("the user's rights cannot be had")
		}
	}
	return nil
}

func open(b Bind) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, b.Source, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return nil, refused(b, err)
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return nil, refused(b, err)
	}
	return os.NewFile(uintptr(tree), b.Source), nil
}

func refused(b Bind, err error) error {
	why := err.Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "the job's container has no such file or directory: mount its storage by --container-mounts of sbatch"
	case errors.Is(err, fs.ErrPermission):
		why = "the job's user may not go there"
	case errors.Is(err, unix.ELOOP):
		why = "links lead there that are not followed"
	}
	return &failure.Failure{Kind: failure.MountFailed, Message: fmt.Sprintf("cannot mount %s on %s: %s", b.Source, b.Target, why), Detail: err.Error()}
}
