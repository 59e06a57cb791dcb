package noded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci"
)

// bindStorage binds each storage entry by its handle to a place of ours, where
// no job can exchange it before the container mounts it from there.
func (r *rank) bindStorage(context.Context) error {
	if err := makeRankDir(r.dir); err != nil {
		return err
	}
	who := r.tenant()
	var tmpfs int64
	for i, entry := range r.order.Spec.Request.Docker.Storage {
		if entry.HostPath == job.TmpfsHostPath {
			tmpfs += int64(entry.SizeGB) << 30
			continue
		}
		src, err := r.a.storage.open(entry, who)
		if err != nil {
			return err
		}
		place := filepath.Join(r.dirMounts(), strconv.Itoa(i))
		err = bind(src, place)
		src.Close()
		if err != nil {
			return mountErrorf("cannot mount storage %q: %v", entry.HostPath, err)
		}
		r.mounts = append(r.mounts, oci.Mount{Source: place, Target: entry.ContainerPath, ReadOnly: entry.ReadOnly || src.readOnly})
	}
	if limit := int64(r.a.cfg.TmpfsMax); limit > 0 && tmpfs > limit {
		return mountErrorf("tmpfs mounts of %s together are more than the %s that this node allows", formatBytes(tmpfs), formatBytes(limit))
	}
	return nil
}

func (r *rank) dirMounts() string { return filepath.Join(r.dir, "mnt") }

// makeRankDir makes a rank's directory anew. What may be there is of an
// earlier try that ran nothing: it is in no one's use.
func makeRankDir(dir string) error {
	if err := removeRankDir(dir); err != nil {
		return fmt.Errorf("make rank directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		return fmt.Errorf("make rank directory: %w", err)
	}
	return nil
}

// removeRankDir removes a rank's directory. The mounts go first and for sure:
// what they show is users' storage.
func removeRankDir(dir string) error {
	if err := unbindAll(filepath.Join(dir, "mnt")); err != nil {
		return err
	}
	if err := oci.Remove(filepath.Join(dir, "box")); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// bind mounts what src holds on place, which it makes.
func bind(src source, place string) error {
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return err
	}
	if src.dir {
		if err := os.Mkdir(place, 0o700); err != nil {
			return err
		}
	} else if err := os.WriteFile(place, nil, 0o600); err != nil {
		return err
	}
	from := "/proc/self/fd/" + strconv.Itoa(int(src.handle.Fd()))
	return unix.Mount(from, place, "", unix.MS_BIND|unix.MS_REC, "")
}

func (r *rank) unbindStorage() error {
	r.mounts = nil
	return unbindAll(r.dirMounts())
}

// unbindAll takes every mount in dir away, and dir. It never removes what a
// mount shows: only empty directories and files of our own.
func unbindAll(dir string) error {
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

// record notes durably, before anything of the user's can run, what the rank
// is and which cores it has.
func (r *rank) record(context.Context) error {
	rec := rankRecord{ID: r.id, Order: r.order, Cores: r.cores.CPUs.String(), Digest: r.img.Digest, Boot: r.a.boot, Ports: r.statusPorts(), Cached: r.cached}
	if err := saveRecord(r.dir, rec); err != nil {
		return fmt.Errorf("record rank: %w", err)
	}
	r.setPhase(node.PhaseStarting)
	return nil
}
