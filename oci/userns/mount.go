package userns

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Shift returns the directory path as a mount of its own through which each
// file belongs to whom its owner is in the user namespace: what root of the
// host owns belongs to root of the container. The mount is nowhere to be seen;
// it goes with the file.
func Shift(path string, user *os.File) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	tree := os.NewFile(uintptr(fd), path)
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(user.Fd())}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, attr); err != nil {
		tree.Close()
		return nil, fmt.Errorf("map the ids of %s: %w", path, err)
	}
	return tree, nil
}
