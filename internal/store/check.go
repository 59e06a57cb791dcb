package store

import (
	"errors"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// kindAside is of records that were taken out: the kind, then the key it had. 'q'
// is no kind of record.
const kindAside = 'q'

// Everything gives every record, of all kinds, by key. The record's value is only valid
// during the call.
func (s *Store) Everything(take func(state.Record) error) error {
	for _, span := range [][2]byte{{0, 'm'}, {'m' + 1, kindAside}, {kindAside + 1, 0xff}} { // 'm': the store's own
		err := s.walk([]byte{span[0]}, []byte{span[1]}, false, func(r state.Record) (bool, error) { return true, take(r) })
		if err != nil {
			return err
		}
	}
	return nil
}

// SetAside takes records out, keeps them where nothing reads them, and has jobs
// get numbers from next on.
func (s *Store) SetAside(rs []state.Record, next job.Number) error {
	b := s.db.NewBatch()
	for _, r := range rs {
		k := key(r)
		if err := errors.Join(b.Set(slices.Concat([]byte{kindAside}, k), value(r), nil), b.Delete(k, nil)); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	if err := b.Set(key(state.Record{Kind: state.KindFloor, Job: next}), []byte{}, nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return s.commit(b)
}
