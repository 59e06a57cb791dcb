package noded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
)

// bindStorage binds each storage entry by its handle to a place of ours, where
// no job can exchange it before the container mounts it from there.
func (r *rank) bindStorage(context.Context) error {
	if err := makeRankDir(r.dir); err != nil {
		return err
	}
	who, err := r.tenant()
	if err != nil {
		return err
	}
	var tmpfs int64
	for i, entry := range r.order.Spec.Request.Docker.Storage {
		if entry.HostPath == job.TmpfsHostPath {
			tmpfs += int64(entry.SizeGB) << 30
			continue
		}
		src, err := r.a.storage.Open(entry, who)
		if err != nil {
			return err
		}
		place := filepath.Join(r.dirMounts(), strconv.Itoa(i))
		err = src.Bind(place)
		src.Close()
		if err != nil {
			return reason.Errorf(job.Mount, "cannot mount storage %q: %v", entry.HostPath, err)
		}
		r.mounts = append(r.mounts, oci.Mount{Source: place, Target: entry.ContainerPath, ReadOnly: entry.ReadOnly || src.ReadOnly})
	}
	if limit := int64(r.a.cfg.TmpfsMax); limit > 0 && tmpfs > limit {
		return reason.Errorf(job.Mount, "tmpfs mounts of %s together are more than the %s that this node allows", config.FormatBytes(tmpfs), config.FormatBytes(limit))
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
	if err := storage.Unbind(filepath.Join(dir, "mnt")); err != nil {
		return err
	}
	if err := oci.Remove(filepath.Join(dir, "box")); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func (r *rank) unbindStorage() error {
	r.mounts = nil
	return storage.Unbind(r.dirMounts())
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
