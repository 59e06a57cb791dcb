package rank

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
)

// binds are the places to which the rank's storage is bound.
type binds struct {
	dir    string
	mounts []oci.Mount
}

// bind binds each storage entry by its handle to a place of ours, where no job
// can exchange it before the container mounts it from there.
func (b *binds) bind(roots *storage.Roots, tenant func() (storage.Tenant, error), o *order, tmpfsMax int64) error {
	if err := makeDir(o.dir); err != nil {
		return err
	}
	who, err := tenant()
	if err != nil {
		return err
	}
	var tmpfs int64
	for i, entry := range o.Spec.Request.Docker.Storage {
		if entry.HostPath == job.TmpfsHostPath {
			if !entry.OfMemory { // those are bound by the memory itself
				tmpfs += o.tmpfsBytes(entry)
			}
			continue
		}
		src, err := roots.Open(entry, who)
		if err != nil {
			return err
		}
		place := filepath.Join(b.dir, strconv.Itoa(i))
		err = src.Bind(place)
		src.Close()
		if errno, ok := err.(unix.Errno); ok { // of the mount itself: what is mounted may have been removed meanwhile
			return reason.Errorf(job.Mount, "cannot mount storage %q: %v", entry.HostPath, errno)
		}
		if err != nil {
			return fmt.Errorf("make a place for storage: %w", err)
		}
		b.mounts = append(b.mounts, oci.Mount{Source: place, Target: entry.ContainerPath, ReadOnly: entry.ReadOnly || src.ReadOnly})
	}
	if tmpfsMax > 0 && tmpfs > tmpfsMax {
		return reason.Errorf(job.Mount, "tmpfs mounts of %s together are more than the %s that this node allows", config.FormatBytes(tmpfs), config.FormatBytes(tmpfsMax))
	}
	return nil
}

func (b *binds) unbind() error {
	b.mounts = nil
	return storage.Unbind(b.dir)
}

// makeDir makes a rank's directory anew. What may be there is of an
// earlier try that ran nothing: it is in no one's use.
func makeDir(dir string) error {
	if err := RemoveDir(dir); err != nil {
		return fmt.Errorf("make rank directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		return fmt.Errorf("make rank directory: %w", err)
	}
	return nil
}

// RemoveDir removes a rank's directory. The mounts go first and for sure:
// what they show is users' storage.
func RemoveDir(dir string) error {
	if err := storage.Unbind(filepath.Join(dir, "mnt")); err != nil {
		return err
	}
	if err := oci.Remove(filepath.Join(dir, "box")); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
