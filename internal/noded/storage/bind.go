package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Bind mounts what it holds on place, which it makes.
func (src source) Bind(place string) error {
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return err
	}
	if src.Dir {
		if err := os.Mkdir(place, 0o700); err != nil {
			return err
		}
	} else if err := os.WriteFile(place, nil, 0o600); err != nil {
		return err
	}
	from := "/proc/self/fd/" + strconv.Itoa(int(src.Handle.Fd()))
	return unix.Mount(from, place, "", unix.MS_BIND|unix.MS_REC, "")
}

// Unbind takes every mount in dir away, and dir. It never removes what a
// mount shows: only empty directories and files of our own.
func Unbind(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		place := filepath.Join(dir, e.Name())
		// More than one may lie there if a crash came in between.
		for {
			err := unix.Unmount(place, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
				break
			}
			if err != nil {
				return fmt.Errorf("unmount %s: %w", place, err)
			}
		}
		// Unlike RemoveAll, these cannot reach into a directory that is full.
		if err := os.Remove(place); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Remove(dir)
}
