package trees

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/tree"
)

// Patience with uploads under way, and with submissions that were told that a
// tree is there: what is younger is not removed.
const patience = time.Hour

// most bounds what a user has.
func (s *Store) most(user string) tree.Size {
	m := s.rules.Load().Most(user)
	if m.Bytes == 0 {
		m.Bytes = math.MaxInt64
	}
	if m.Files == 0 {
		m.Files = math.MaxInt64
	}
	return m
}

// room makes room for what is to come, by what no job needs, or says that there
// is none.
func (s *Store) room(o *owner, more tree.Size) error {
	if err := s.diskRoom(o, more); err != nil {
		return err
	}
	most := s.most(o.name)
	fits := func() bool { return o.fits(more, most) }
	if fits() {
		return nil
	}
	if err := s.dropLoose(o); err != nil || fits() {
		return err
	}
	needed, err := s.rules.Load().Needed(o.name)
	if err != nil {
		return err
	}
	for _, id := range o.idle(needed, s.Now().Add(-patience)) {
		if err := errors.Join(o.drop(id), s.dropLoose(o)); err != nil || fits() {
			return err
		}
	}
	return api.Errorf(api.CodeOverLimit, "%s has %d MiB and %d files in uploaded directories, of at most %d MiB and %d files (limits.perUser.uploadedMiB, uploadedFiles)",
		o.name, o.bytes>>20, o.files, most.Bytes>>20, most.Files).
		WithHint("name what jobs do not need in .gbatchignore, or mount it from storage; a directory goes when no job needs it and an hour has passed")
}

// diskRoom says that there is no room on the disk for what is to come.
func (s *Store) diskRoom(o *owner, more tree.Size) error {
	var st unix.Statfs_t
	if err := unix.Statfs(o.dir, &st); err != nil {
		return err
	}
	if int64(st.Bavail)*st.Bsize-more.Bytes < s.rules.Load().Free() {
		return errFull
	}
	return nil
}

// fits says whether a user's bound allows more.
func (o *owner) fits(more, most tree.Size) bool {
	return o.bytes+more.Bytes <= most.Bytes && o.files+more.Files <= most.Files
}

// idle are the trees that were last wanted before a moment and no job needs, the
// oldest first.
func (o *owner) idle(needed map[string]bool, before time.Time) (ids []string) {
	for id, k := range o.trees {
		if !needed[id] && k.wanted.Before(before) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(o.trees[a].wanted.Compare(o.trees[b].wanted), cmp.Compare(a, b))
	})
	return ids
}

// drop removes a tree; its chunks are loose then if no other has them.
func (o *owner) drop(id string) error {
	if err := os.Remove(o.treePath(id)); err != nil {
		return err
	}
	k := o.trees[id]
	delete(o.trees, id)
	o.files -= k.Files
	o.bytes -= k.charge()
	for _, c := range k.Chunks {
		if have := o.chunks[c.Sum]; have != nil {
			if have.trees--; have.trees == 0 {
				have.since = k.wanted
			}
		}
	}
	return nil
}

// dropLoose removes chunks that no tree has, and none under way needs.
func (s *Store) dropLoose(o *owner) error {
	before := s.Now().Add(-patience)
	for sum, c := range o.chunks {
		if c.trees > 0 || !c.since.Before(before) {
			continue
		}
		if err := os.Remove(o.chunkPath(sum)); err != nil {
			return err
		}
		delete(o.chunks, sum)
		o.bytes -= charge(c.size)
	}
	return nil
}

// Run removes what nobody needs any more, and sees that other controllers have what is
// here, until ctx is done.
func (s *Store) Run(ctx context.Context) {
	every, compare := time.NewTicker(patience), time.NewTicker(compareEvery)
	defer every.Stop()
	defer compare.Stop()
	said := s.compared(ctx, "")
	for {
		select {
		case <-ctx.Done():
			return
		case <-compare.C:
			said = s.compared(ctx, said)
		case <-every.C:
			if err := s.Collect(); err != nil {
				s.Log.Error("remove uploaded directories that no job needs; it is tried again", "error", err)
			}
		}
	}
}

// Collect removes what nobody needs any more. A tree that a job needs is noted as
// wanted, so that it stays for as long after the job's end as is promised, less
// an eighth.
func (s *Store) Collect() error {
	s.mu.Lock()
	var all []*owner
	for _, o := range s.users {
		all = append(all, o)
	}
	s.mu.Unlock()
	var errs error
	for _, o := range all {
		errs = errors.Join(errs, s.collect(o))
	}
	return errs
}

func (s *Store) collect(o *owner) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	rules := s.rules.Load()
	now, keep := s.Now(), rules.Keep()
	if err := s.dropLoose(o); err != nil {
		return err
	}
	old := o.idle(nil, now.Add(-keep/8))
	if len(old) == 0 {
		return nil
	}
	needed, err := rules.Needed(o.name)
	if err != nil {
		return err
	}
	for _, id := range old {
		switch k := o.trees[id]; {
		case needed[id]:
			err = s.want(o, id)
		case k.wanted.Before(now.Add(-keep)):
			err = o.drop(id)
		}
		if err != nil {
			return err
		}
	}
	return s.dropLoose(o)
}
