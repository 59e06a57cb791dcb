package rank

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
	"gbatch/oci/stage"
)

// What runs before a job's program and beside it, each in an image of its own, are parts of
// its container: the shim runs them, and there is one container to start, adopt, stop and
// clean up.

// program is one of them: what was asked for, its image, and what it mounts.
type program struct {
	asked *job.Before
	image pulled
	binds
}

// pullAll brings the images of all parts here, the job's own first.
func (r *Rank) pullAll(ctx context.Context) error {
	login := r.image.login
	if err := r.image.pull(ctx, r.node.Images, &r.order, r.state); err != nil {
		return err
	}
	asked := r.order.Spec.Programs()
	r.programs = make([]program, len(asked))
	for i := range r.programs {
		at := &r.programs[i]
		at.asked, at.binds = &asked[i], binds{dir: r.binds.dir, prefix: "b" + strconv.Itoa(i) + "-"}
		img, err := r.pullBeside(ctx, at.asked.Image, login)
		if err != nil {
			return &programError{at.asked.Name, err}
		}
		at.image.Image = img
	}
	return nil
}

// programError is an error of one of a job's programs but its own.
type programError struct {
	name string
	err  error
}

func (e *programError) Error() string { return e.name + ": " + e.err.Error() }
func (e *programError) Unwrap() error { return e.err }

// digests are those of the images of the job's further programs.
func (r *Rank) digests() (list []string) {
	for i := range r.programs {
		list = append(list, r.programs[i].image.Digest)
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
	v := &storage.Volumes{Scratch: r.node.Disk.Scratch(r.order.id), Dir: r.binds.dir, Memory: r.order.Allocation.MemBytes}
	v.UID, v.GID, _ = r.user.ids.Host(0, 0)
	if err := v.Make(r.order.Spec.Mounts()); err != nil {
		return err
	}
	if err := tooMuchMemory(&r.order, int64(r.node.Config.TmpfsMax)); err != nil {
		return err
	}
	if err := r.binds.bind(r.node.Storage, who, r.order.Spec.Request.Docker.Storage, v); err != nil {
		return err
	}
	for i := range r.programs {
		at := &r.programs[i]
		if err := at.bind(r.node.Storage, who, at.asked.Storage, v); err != nil {
			return &programError{at.asked.Name, err}
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
	for i := range r.programs {
		at := &r.programs[i].binds
		at.shown, at.mounts, at.below, at.files = nil, nil, nil, nil
	}
	return r.binds.unbind()
}

// parts are the job's further programs, as the shim is told: those before its own, and
// those beside it.
func (r *Rank) parts() (before, beside []oci.Part, err error) {
	first := len(r.programs)
	if g := r.order.Spec.Gbatch; g != nil {
		first -= len(g.Beside)
	}
	_, has := r.order.Spec.Portions(len(r.order.Allocation.GPUs))
	for i := range r.programs {
		one, err := partOf(r.having(has[i]), &r.programs[i])
		if err != nil {
			return nil, nil, &programError{r.programs[i].asked.Name, err}
		}
		if i < first {
			before = append(before, one)
		} else {
			beside = append(beside, one)
		}
	}
	return before, beside, nil
}

func partOf(at recipe, p *program) (oci.Part, error) {
	at.order.Spec = at.order.Spec.ProgramSpec(p.asked)
	at.image, at.binds = p.image, p.binds
	spec, err := at.buildSpec()
	if err != nil {
		return oci.Part{}, err
	}
	files, err := at.files()
	return oci.Part{
		Name: p.asked.Name, Spec: spec, Layers: at.image.Layers, Files: files, Below: at.binds.below,
		Stays: p.asked.Sidecar, MemoryBytes: int64(p.asked.MemoryMB) << 20,
	}, err
}

// add has a mount of a volume shown.
func (b *binds) add(v *storage.Volumes, m job.Storage) {
	top := v.At(m.Volume)
	b.shown.Add(storage.Shown{Target: m.ContainerPath, Source: top, ReadOnly: m.ReadOnly, Later: m.SubPath != ""})
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
	at := storage.Shown{Target: entry.ContainerPath, Source: place, ReadOnly: entry.ReadOnly || src.ReadOnly}
	if src.Dir {
		at.Storage = entry.HostPath
	}
	b.shown.Add(at)
	return nil
}

// having is the recipe of a program that has so many of the rank's GPUs, and of no others.
func (r *recipe) having(p job.Portion) recipe {
	at := *r
	at.order.Allocation.GPUs = r.order.Allocation.GPUs[p.From:p.To]
	return at
}
