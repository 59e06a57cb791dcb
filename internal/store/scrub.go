package store

import (
	"errors"
	"fmt"
	"syscall"

	"gbatch/internal/state"
	"gbatch/internal/store/floor"
)

// Scrub reads all of a store that is in use from its disk, as a start would: the list of its
// files, its log, the count of commits and every record. It does so in a copy that it makes in
// dir, which is not there and on the same disk, and which is mostly links. Commits go on meanwhile. Damage
// is what a start would be refused for, or what could not be merged; err is why nothing can be said. The record's value is only
// valid during the call; take may be slow, and its error ends the scrub. What no record comes from is read after that, in one go.
func (s *Store) Scrub(dir string, take func(state.Record) error) (damage, err error) {
	want := floor.Mark{ID: s.id, Count: s.commits.Load()}
	if err := s.Backup(dir); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, errClosed) {
		return nil, err
	} else if err != nil {
		return s.cfg.damaged(err), nil
	}
	var stopped error
	damage = readCopy(Config{Dir: dir, FS: s.cfg.FS, Mend: s.cfg.Mend, Damaged: s.cfg.Damaged}, want, func(r state.Record) error {
		stopped = take(r)
		return stopped
	})
	if stopped != nil {
		return nil, stopped
	}
	return damage, nil
}

// readCopy reads a copy of a store that had come at least as far as want.
func readCopy(cfg Config, want floor.Mark, take func(state.Record) error) (err error) {
	defer recovered(&err)
	o := options(cfg)
	o.ReadOnly = true
	db, err := openDB(cfg.Dir, o)
	if err != nil {
		return cfg.damaged(err)
	}
	s := &Store{db: db}
	have, _, gap, err := s.progress()
	if err == nil {
		want.Hash = have.Hash // there may be later commits
		if what := compare(have, want, true); what != "" {
			err = fmt.Errorf("%s: %s", what, cfg.mend())
		} else if gap > 0 {
			err = fmt.Errorf("%d of the %d commits that were made to it are missing, though there are later ones: %s", gap, have.Count, cfg.mend())
		}
	}
	if err == nil {
		err = s.Everything(take)
	}
	if err == nil { // what no record is read from is merged with the others one day, too
		if what := db.CheckLevels(nil); what != nil {
			err = cfg.damaged(what)
		}
	}
	return errors.Join(err, db.Close())
}
