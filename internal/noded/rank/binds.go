package rank

import (
	"fmt"
	"os"
	"path/filepath"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/stage"
)

// binds are the places to which the rank's storage is bound.
type binds struct {
	dir    string
	prefix string // of their names
	shown  storage.Shows
	mounts []draft.Mount // what of it the container mounts
	below  []stage.Below // those that show what lies in a volume
	files  []job.File    // of the job: those that lie in none
}

// bind binds each storage entry by its handle.
func (b *binds) bind(roots *storage.Roots, who storage.Tenant, entries []job.Storage, v *storage.Volumes) error {
	for i, entry := range entries {
		switch entry.HostPath {
		case job.TmpfsHostPath:
			b.shown.Add(storage.Shown{Target: entry.ContainerPath, Memory: entry.Bytes(v.Memory)})
		case job.ScratchHostPath:
			b.add(v, entry)
		default:
			if err := b.open(roots, who, i, entry); err != nil {
				return err
			}
		}
	}
	if err := b.shown.Nest(who, filepath.Join(b.dir, b.prefix+"m")); err != nil {
		return err
	}
	for _, s := range b.shown {
		if !s.Nested() && s.Source != "" {
			b.mounts = append(b.mounts, draft.Mount{Source: s.Source, Target: s.Target, ReadOnly: s.MustProtect()})
		}
	}
	return nil
}

// tooMuchMemory refuses file systems in memory that are larger than the node lets them
// be. Those that are part of the job's memory are bound by that.
func tooMuchMemory(o *order, most int64) error {
	var tmpfs int64
	for _, m := range o.Spec.Mounts() {
		if m.HostPath == job.TmpfsHostPath && !m.OfMemory {
			tmpfs += m.Bytes(o.Allocation.MemBytes)
		}
	}
	if most > 0 && tmpfs > most {
		return reason.Errorf(job.Mount, "tmpfs mounts of %s together are more than the %s that this node allows", config.FormatBytes(tmpfs), config.FormatBytes(most))
	}
	return nil
}

func (b *binds) unbind() error {
	b.shown, b.mounts, b.below, b.files = nil, nil, nil, nil
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
