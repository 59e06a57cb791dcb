// Package stage is where a container's root file systems are put together: a file
// system in memory, in the mount namespace of its shim's thread alone, with which it
// goes. It knows no container but the directories and mounts of one.
package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gbatch/oci/failure"
	"gbatch/oci/overlay"
	"gbatch/oci/rmtree"
	"gbatch/oci/rootfs"
)

// Dir is the stage. Root of a container is nobody special on the host: it may not pass
// through the directories that lead to its own.
const Dir = "/run/gbatch/stage"

// Mode lets the container's root pass.
const Mode = 0o711

// Make makes the stage, for this thread alone.
func Make() error {
	if err := os.MkdirAll(Dir, Mode); err != nil {
		return err
	}
	if err := unix.Mount("gbatch", Dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=16m,mode=711"); err != nil {
		return fmt.Errorf("make a place for the container on %s: %w", Dir, err)
	}
	return nil
}

// Root is a root file system: an image's layers, over them what the container writes.
type Root struct {
	ID       string   // unique in Scratch
	At       string   // on the stage
	Scratch  string   // what the container writes goes below it
	Layers   []string // lowest first
	User     *os.File // the user namespace in whose ids the layers are shown; nil: as they are
	UID, GID int      // of the container's root, on the host

	MakeDirs []string
	Files    []rootfs.File

	Again bool // what was written there before is found again
	Once  bool // nothing is read of what is written there once it is unmounted

	mounted bool
}

// Unmounted is the same that is not mounted, to be changed and mounted elsewhere.
func (r Root) Unmounted() Root {
	r.mounted = false
	return r
}

// Mount mounts it, and makes what the container finds beside its image's files.
func (r *Root) Mount() error {
	upper, work := Written(r.Scratch, r.ID)
	// The upper directory's mode is the mode of / in the container.
	for dir, mode := range map[string]os.FileMode{upper: 0o755, work: 0o700} {
		if err := os.Mkdir(dir, mode); err != nil && !(r.Again && errors.Is(err, os.ErrExist)) {
			return fmt.Errorf("make scratch directory: %w", err)
		}
	}
	if err := errors.Join(os.Chmod(upper, 0o755), os.Chown(upper, r.UID, r.GID), os.Mkdir(r.At, Mode)); err != nil {
		return err
	}
	if err := overlay.Mount(overlay.Stack{Lower: r.Layers, User: r.User, Upper: upper, Work: work, Once: r.Once && !r.Again, Target: r.At}); err != nil {
		return err
	}
	r.mounted = true
	return r.furnish()
}

// furnish makes what a container finds beside its image's files.
func (r *Root) furnish() error {
	if len(r.MakeDirs) == 0 && len(r.Files) == 0 {
		return nil
	}
	top, err := os.Open(r.At)
	if err != nil {
		return err
	}
	defer top.Close()
	what, err := rootfs.Root{Top: top, UID: r.UID, GID: r.GID}.Furnish(r.MakeDirs, r.Files)
	if failure.IsImages(err) {
		return &failure.Failure{Kind: failure.ImageUnusable, Message: "the image has something in the way of the " + what, Detail: err.Error()}
	}
	if err != nil {
		return fmt.Errorf("make the %s: %w", what, err)
	}
	return nil
}

// Unmount takes it away, with what is mounted below.
func (r *Root) Unmount() error {
	if !r.mounted {
		return nil
	}
	r.mounted = false
	if err := unix.Unmount(r.At, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount root file system: %w", err)
	}
	return nil
}

// Remove removes what the container with this id has written. It can be repeated.
func Remove(scratch, id string) error {
	upper, work := Written(scratch, id)
	return errors.Join(rmtree.Remove(upper), rmtree.Remove(work))
}

// Written is where below its scratch directory a container writes, and what the kernel
// needs beside it.
func Written(scratch, id string) (upper, work string) {
	return filepath.Join(scratch, id+".upper"), filepath.Join(scratch, id+".work")
}

// UnmountLeft takes a mount off the host. Shims mount in their own
// namespace, so there is none unless someone made it by hand.
func UnmountLeft(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("unmount %s: %w", path, err)
}
