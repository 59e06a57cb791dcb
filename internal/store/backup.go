package store

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"gbatch/internal/state"
)

// Backup makes a copy of the store in a new directory on the same disk: all
// that was committed when it was called, while commits go on. Most of it are
// links to files that never change, so it is quick and takes little room.
func (s *Store) Backup(dir string) error {
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("copy store to %s: %w", dir, err)
	}
	return nil
}

// Restored makes a copy the store that goes on: it gets the record that says
// so, and later starts count from the epoch on. The epoch must be above that of
// any start that the copy does not know of, so that nodes take what is told
// them for news; the time in seconds is.
func (s *Store) Restored(epoch uint64, r state.Record) error {
	b := s.db.NewBatch()
	err := errors.Join(b.Set(key(r), value(r), nil), b.Set(keyEpoch, strconv.AppendUint(nil, max(epoch, s.epoch), 10), nil))
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := s.commit(b); err != nil {
		return fmt.Errorf("write to store: %w", err)
	}
	return nil
}
