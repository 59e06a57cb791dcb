package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrAlive says that a directory cannot be cleaned while its shim lives.
var ErrAlive = errors.New("the container is alive; stop it first")

// Cleanup removes what a container without a shim left on the host: its
// processes, cgroup, mounts and its own writes, which may take long. What is
// kept are the log, the result and the description. It can be repeated, and
// works after a crash at any point.
func Cleanup(dir string) error {
	if !exists(filepath.Join(dir, fileShim)) {
		return nil
	}
	if err := cleanup(dir); err != nil {
		return fmt.Errorf("clean up container %s: %w", filepath.Base(dir), err)
	}
	return nil
}

func cleanup(dir string) error {
	lock, err := takeLock(dir)
	if errors.Is(err, errLocked) {
		return ErrAlive
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := killLeftovers(dir); err != nil {
		return err
	}
	if err := unmountLeftover(filepath.Join(dir, dirRootfs)); err != nil {
		return err
	}
	var cfg ShimConfig
	if err := readJSON(filepath.Join(dir, fileShim), &cfg); err != nil {
		return err
	}
	upper, work := upperDirs(firstOf(cfg.Scratch, dir), cfg.ID)
	return errors.Join(
		os.RemoveAll(upper), os.RemoveAll(work),
		os.RemoveAll(filepath.Join(dir, dirState)),
		// Empty by now; if a mount were still on it, this would fail and not
		// reach into the image.
		removeEmpty(filepath.Join(dir, dirRootfs)),
		removeEmpty(filepath.Join(dir, dirScratch)),
		removeFile(filepath.Join(dir, fileSocket)),
	)
}

// unmountLeftover takes a mount off the host. Shims mount in their own
// namespace, so there is none unless someone made it by hand.
func unmountLeftover(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("unmount %s: %w", path, err)
}

func removeEmpty(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("remove %s: %w", dir, err)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Remove is Cleanup and then removes the directory with log and result.
func Remove(dir string) error {
	if err := Cleanup(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// Written is the directory of what a container that has ended wrote in its own
// file system, over its image: whatever lies there is the user's doing. It is
// there until Cleanup.
func Written(dir string) (string, error) {
	var cfg ShimConfig
	if err := readJSON(filepath.Join(dir, fileShim), &cfg); err != nil {
		return "", fmt.Errorf("find what the container wrote: %w", err)
	}
	upper, _ := upperDirs(firstOf(cfg.Scratch, dir), cfg.ID)
	return upper, nil
}
