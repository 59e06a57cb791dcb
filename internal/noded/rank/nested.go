package rank

import (
	"path/filepath"
	"strconv"

	"gbatch/internal/job"
	"gbatch/internal/noded/storage"
	"gbatch/oci/draft"
)

// furnish lays out the files that the rank's programs find.
func furnish(r *Rank) error {
	who, err := r.tenant()
	if err != nil {
		return err
	}
	if err := r.binds.cover(who, r.order.Spec.Files(), &r.recipe); err != nil {
		return err
	}
	for i := range r.programs {
		at := &r.programs[i]
		if err := at.cover(who, at.asked.Files, &r.recipe); err != nil {
			return &programError{at.asked.Name, err}
		}
	}
	r.written, err = r.files()
	return err
}

// cover mounts those of a job's files that lie in what a program mounts. They can only be
// read: what else lies there stays as it is.
func (b *binds) cover(who storage.Tenant, files []job.File, r *recipe) error {
	for i, f := range files {
		if !b.shown.Covers(f.Path) {
			b.files = append(b.files, f)
			continue
		}
		source := filepath.Join(r.secrets.dir, f.Secret)
		if f.Secret == "" {
			source = filepath.Join(b.dir, b.prefix+"f"+strconv.Itoa(i))
			uid, gid, _ := r.user.ids.Host(0, 0)
			if err := storage.WriteFile(source, f, uid, gid); err != nil {
				return err
			}
		}
		byItself, err := b.shown.Cover(who, f.Path, source)
		if err != nil {
			return err
		}
		if byItself {
			b.mounts = append(b.mounts, draft.Mount{Source: source, Target: f.Path, ReadOnly: true})
		}
	}
	return nil
}
