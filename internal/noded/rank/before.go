package rank

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/stage"
)

// What runs before a job's program, each in an image of its own, are parts of its
// container: the shim runs them one after the other, and there is one container to
// start, adopt, stop and clean up.

// earlier is one of them: its image, and what it mounts.
type earlier struct {
	image pulled
	binds
}

// pullAll brings the images of all parts here, the job's own first.
func (r *Rank) pullAll(ctx context.Context) error {
	login := r.image.login
	if err := r.image.pull(ctx, r.node.Images, &r.order, r.state); err != nil {
		return err
	}
	r.before = make([]earlier, len(r.order.Spec.Before()))
	for i := range r.before {
		at := &r.before[i]
		at.binds = binds{dir: r.binds.dir, prefix: "b" + strconv.Itoa(i) + "-"}
		img, err := r.pullBeside(ctx, r.order.Spec.Before()[i].Image, login)
		if err != nil {
			return err
		}
		at.image.Image = img
	}
	return nil
}

// digests are those of the images of what runs before.
func (r *Rank) digests() (list []string) {
	for i := range r.before {
		list = append(list, r.before[i].image.Digest)
	}
	return list
}

// bindAll binds what all parts mount.
func (r *Rank) bindAll() error {
	if err := makeDir(r.order.dir); err != nil {
		return err
	}
	who, err := r.tenant()
	if err != nil {
		return err
	}
	v := &volumes{scratch: r.node.Disk.Scratch(r.order.id), dir: r.binds.dir, memory: r.order.Allocation.MemBytes}
	v.uid, v.gid, _ = r.user.ids.Host(0, 0)
	if err := v.make(r.order.Spec.Mounts()); err != nil {
		return err
	}
	if err := tooMuchMemory(&r.order, int64(r.node.Config.TmpfsMax)); err != nil {
		return err
	}
	if err := r.binds.bind(r.node.Storage, who, r.order.Spec.Request.Docker.Storage, v); err != nil {
		return err
	}
	for i := range r.before {
		if err := r.before[i].bind(r.node.Storage, who, r.order.Spec.Before()[i].Storage, v); err != nil {
			return err
		}
	}
	return nil
}

// unbindAll takes the storage away, unless others may run in the container: then that comes
// with its end.
func (r *Rank) unbindAll() error {
	if r.shelter.owned {
		return nil
	}
	for i := range r.before {
		r.before[i].binds.mounts, r.before[i].binds.below = nil, nil
	}
	return r.binds.unbind()
}

// parts are what runs before, as the shim is told.
func (r *Rank) parts() (list []oci.Part, err error) {
	for i := range r.before {
		at := r.recipe
		at.order.Spec = r.order.Spec.BeforeSpec(i)
		at.image, at.binds = r.before[i].image, r.before[i].binds
		name, gpus := r.order.Spec.Before()[i].Name, r.order.Spec.Before()[i].GPUs
		if !gpus {
			at.order.Allocation.GPUs = nil
		}
		spec, err := at.buildSpec()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files, err := at.files()
		if err != nil {
			return nil, err
		}
		list = append(list, oci.Part{Name: name, Spec: spec, Layers: at.image.Layers, Files: files, Below: at.binds.below})
	}
	return list, nil
}

// volumes are the rank's own directories, which its mounts show by name.
type volumes struct {
	scratch, dir string
	memory       int64
	uid, gid     int // of the container's root
	at           map[string]string
}

// make makes those that mounts name: in the rank's scratch space, or in memory.
func (v *volumes) make(mounts []job.Storage) error {
	v.at = map[string]string{}
	for _, m := range mounts {
		if m.HostPath != job.ScratchHostPath || v.at[m.Volume] != "" {
			continue
		}
		at := storage.Volume(v.scratch, m.Volume)
		if m.OfMemory {
			at = filepath.Join(v.dir, "v-"+m.Volume)
		}
		if err := os.MkdirAll(at, 0o700); err != nil {
			return fmt.Errorf("make volume: %w", err)
		}
		if m.OfMemory {
			size := v.memory
			if m.SizeGB > 0 {
				size = int64(m.SizeGB) << 30
			}
			if err := unix.Mount("gbatch", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=0777,size=%d", size)); err != nil {
				return fmt.Errorf("make volume: %w", err)
			}
		}
		if err := os.Chown(at, v.uid, v.gid); err != nil {
			return fmt.Errorf("make volume: %w", err)
		}
		if err := os.Chmod(at, 0o777); err != nil {
			return fmt.Errorf("make volume: %w", err)
		}
		v.at[m.Volume] = at
	}
	return nil
}

// add has a mount of a volume shown.
func (b *binds) add(v *volumes, m job.Storage) {
	top := v.at[m.Volume]
	b.mounts = append(b.mounts, draft.Mount{Source: top, Target: m.ContainerPath, ReadOnly: m.ReadOnly})
	if m.SubPath != "" {
		b.below = append(b.below, stage.Below{Target: m.ContainerPath, Top: top, Path: m.SubPath})
	}
}

// open opens what a mount shows of the site's storage, and binds it to a place of ours,
// where no job can exchange it before the container mounts it from there.
func (b *binds) open(roots *storage.Roots, who storage.Tenant, i int, entry job.Storage) error {
	src, err := roots.Open(entry, who)
	if err != nil {
		return err
	}
	place := filepath.Join(b.dir, b.prefix+strconv.Itoa(i))
	err = src.Bind(place)
	src.Close()
	if errno, ok := err.(unix.Errno); ok { // of the mount itself: what is mounted may have been removed meanwhile
		return reason.Errorf(job.Mount, "cannot mount storage %q: %v", entry.HostPath, errno)
	}
	if err != nil {
		return fmt.Errorf("make a place for storage: %w", err)
	}
	b.mounts = append(b.mounts, draft.Mount{Source: place, Target: entry.ContainerPath, ReadOnly: entry.ReadOnly || src.ReadOnly})
	return nil
}
