package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"gbatch/internal/store/floor"
)

// Each commit leaves a witness. A database that lost its list of files from some
// change on has the newest commits, in its log, and the oldest: the mark is right, and
// those between are gone. The last witnesses are compared with the mark at start.

// maxWitnesses is how many there are; a newer one takes the place of the oldest. So many
// commits are more than the log alone can hold, so that a gap before the log is among them.
const maxWitnesses = 1 << 18

const witnessPrefix = "m/w/"

func witnessKey(commit uint64) []byte {
	slot := binary.BigEndian.AppendUint32(nil, uint32(commit%maxWitnesses))
	return append([]byte(witnessPrefix), slot...)
}

// testify adds the witness of a commit.
func testify(b *pebble.Batch, commit uint64) error {
	return b.Set(witnessKey(commit), binary.BigEndian.AppendUint64(nil, commit), nil)
}

// beginWitnesses notes from which commit on there are witnesses: where there are none
// yet, or only those of another count, from the one that b becomes.
func (s *Store) beginWitnesses(b *pebble.Batch, anew bool) error {
	from, err := s.meta(keyWitness)
	if err != nil {
		return err
	}
	if anew || from == 0 {
		from = s.mark.Count + 1
		if err := b.DeleteRange([]byte(witnessPrefix), after([]byte(witnessPrefix)), nil); err != nil {
			return err
		}
	}
	return b.Set(keyWitness, strconv.AppendUint(nil, from, 10), nil)
}

// gap is how many of the commits before a mark have left no witness, at least. A store with a
// mark has a format, and one with witnesses says since when: without these its first
// commits are missing.
func (s *Store) gap(mark floor.Mark, format uint64) (missing uint64, err error) {
	from, err := s.meta(keyWitness)
	if err != nil {
		return 0, err
	}
	list, err := s.witnesses()
	switch {
	case err != nil || from == 0 && format != 0 && len(list) == 0:
		return 0, err // it has none yet
	case from == 0 && format == 0:
		from = 1
	case from == 0:
		from = max(slices.Min(list), 2) - 1
	}
	if mark.Count >= maxWitnesses {
		from = max(from, mark.Count-maxWitnesses+1)
	}
	found := uint64(0)
	for _, n := range list {
		if n >= from && n <= mark.Count {
			found++
		}
	}
	if want := mark.Count + 1 - from; found < want {
		return want - found, nil
	}
	return 0, nil
}

// witnesses are the commits that left one.
func (s *Store) witnesses() (list []uint64, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte(witnessPrefix), UpperBound: after([]byte(witnessPrefix))})
	if err != nil {
		return nil, fmt.Errorf("read from store: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if v := it.Value(); len(v) == 8 {
			list = append(list, binary.BigEndian.Uint64(v))
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, fmt.Errorf("read from store: %w", err)
	}
	return list, nil
}
