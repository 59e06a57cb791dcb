package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store/floor"
)

// The store of one of several controllers is a member: what is committed is a batch that
// they have agreed on, in the same order on each. Whoever leads proposes batches; all,
// itself too, apply them. So the members' marks are the same after the same batch.

// keyApplied has the place in the common log of the last batch that was applied, 0 at first. A store
// that has one is a member's, and one that Open has opened since is no more.
var keyApplied = []byte("m/applied")

// keyShown has what the clock of who led showed when it proposed that batch, Unix milliseconds.
var keyShown = []byte("m/shown")

// ErrFollows is of a commit by who does not lead.
var ErrFollows = errors.New("another controller leads: it alone decides what is stored")

// Found makes a store a member's, the first one's. It is made if there is none.
func Found(cfg Config) error {
	s, err := Open(cfg)
	if err != nil {
		return err
	}
	return errors.Join(s.db.Set(keyApplied, make([]byte, 8), pebble.Sync), s.Close())
}

// IsMember says whether the store of a directory is there, and a member's.
func IsMember(cfg Config) (there, member bool, err error) {
	cfg = cfg.onDisk()
	if files, err := cfg.FS.List(cfg.Dir); len(files) == 0 {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, false, err
	}
	if _, member, err = cfg.applied(); err != nil {
		err = cfg.damaged(err)
	}
	return true, member, err
}

// applied is the place in the common log of the last batch that a member's store has, which nobody has open.
func (c Config) applied() (at uint64, member bool, err error) {
	defer recovered(&err)
	o := options(c)
	o.ReadOnly = true
	db, err := openDB(c.Dir, o)
	if err != nil {
		return 0, false, err
	}
	value, member, err := (&Store{db: db}).get(keyApplied)
	if len(value) == 8 {
		at = binary.BigEndian.Uint64(value)
	}
	return at, member, errors.Join(err, db.Close())
}

// OpenMember opens the store of a member, which Found has made one or another member has sent.
// Unlike Open it commits nothing, as a member alone must not.
func OpenMember(cfg Config) (*Store, error) {
	cfg = cfg.onDisk()
	mark, fresh, err := inspect(cfg)
	if err == nil && fresh {
		err = errors.New("it is empty: it comes from another controller")
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", cfg.Dir, err)
	}
	s, err := openMember(cfg, mark)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", cfg.Dir, cfg.damaged(err))
	}
	return s, nil
}

// CheckReceived says why a copy of another member's store cannot take the place of this one's; nil: it can. All of it is read: a
// copy of damaged files would be found out when the whole ones are gone.
func CheckReceived(cfg Config) error {
	cfg = cfg.onDisk()
	mark, err := received(cfg)
	if err == nil {
		err = readCopy(cfg, mark, func(state.Record) error { return nil })
	}
	return err
}

// received is the mark of a copy of another member's store.
func received(cfg Config) (floor.Mark, error) {
	mark, format, gap, err := readMark(cfg)
	switch {
	case err != nil:
	case format > formatNumber:
		err = fmt.Errorf("its format is %d and this program knows up to %d: update this controller", format, formatNumber)
	case gap > 0 || mark == floor.Mark{}:
		err = fmt.Errorf("the copy lacks %d of its commits", gap)
	}
	if err != nil {
		return mark, fmt.Errorf("open store %s: %w", cfg.Dir, err)
	}
	return mark, nil
}

// Received opens a copy of another member's store, which has no file beside it yet that says
// how far it must have come.
func Received(cfg Config) (*Store, error) {
	cfg = cfg.onDisk()
	mark, err := received(cfg)
	if err != nil {
		return nil, err
	}
	return openMember(cfg, mark)
}

func openMember(cfg Config, mark floor.Mark) (s *Store, err error) {
	defer recovered(&err)
	s = &Store{cfg: cfg, id: mark.ID, mark: mark, member: true}
	s.commits.Store(mark.Count)
	if s.db, err = openDB(cfg.Dir, options(cfg)); err != nil {
		return nil, err
	}
	at, _, err := s.get(keyApplied)
	if len(at) == 8 {
		s.applied.Store(binary.BigEndian.Uint64(at))
	}
	shown, _, errShown := s.get(keyShown)
	if len(shown) == 8 {
		s.shown = int64(binary.BigEndian.Uint64(shown))
	}
	if err = errors.Join(err, errShown); err == nil {
		s.floor, err = floor.Open(cfg.FS, cfg.floorFile(), mark)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Applied is the place in the common log of the last batch that this member has, 0 for none.
func (s *Store) Applied() uint64 { return s.applied.Load() }

// Shown is what the clock of who led showed at the last batch that this member had when it was opened, Unix
// milliseconds; 0: that is not known.
func (s *Store) Shown() int64 { return s.shown }

// Lead has this member commit by propose, which returns when the members have agreed on
// a batch and this one has applied it, and counts the start of who leads.
func (s *Store) Lead(propose func(batch []byte) error) error {
	s.propose = propose
	return s.countStart()
}

// Follow ends what Lead began: commits are errors.
func (s *Store) Follow() { s.propose = nil }

// Apply makes a batch durable that the members have agreed on, and what the clock of its author showed. One that was
// applied before is passed over.
func (s *Store) Apply(place uint64, shownMS int64, batch []byte) error {
	if place <= s.applied.Load() {
		return nil
	}
	if err := readBatch(batch, nil); err != nil {
		return fmt.Errorf("read batch %d: %w", place, err)
	}
	b := s.db.NewBatch()
	if err := b.SetRepr(bytes.Clone(batch)); err != nil {
		return errors.Join(fmt.Errorf("read batch %d: %w", place, err), b.Close())
	}
	if err := s.apply(b, func(b *pebble.Batch) error {
		return errors.Join(b.Set(keyApplied, binary.BigEndian.AppendUint64(nil, place), nil), b.Set(keyShown, binary.BigEndian.AppendUint64(nil, uint64(shownMS)), nil))
	}); err != nil {
		return fmt.Errorf("apply batch %d: %w", place, err)
	}
	s.applied.Store(place)
	if s.cfg.Applied == nil {
		return nil
	}
	if err := s.tell(place, batch); err != nil {
		return fmt.Errorf("read batch %d: %w", place, err)
	}
	return nil
}

// tell gives the records of jobs in a batch to who wants to know of them.
func (s *Store) tell(place uint64, batch []byte) error {
	return readBatch(batch, func(kind pebble.InternalKeyKind, k, v []byte) error {
		if state.Kind(k[0]) != state.KindJob {
			return nil
		}
		rec, err := record(k, v)
		if err != nil {
			return err
		}
		if kind != pebble.InternalKeyKindSet {
			rec.Value = nil
		}
		s.cfg.Applied(place, rec.Job, rec.Value)
		return nil
	})
}

// Commits counts what was committed, the same on each member that has all of it.
func (s *Store) Commits() uint64 { return s.commits.Load() }

// Jobs gives the records of jobs from a number on, most at once, and the number to go on
// from, 0 at the end. The value is only valid during the call.
func (s *Store) Jobs(from job.Number, most int, take func(n job.Number, value []byte)) (next job.Number, err error) {
	err = s.walk(key(state.Record{Kind: state.KindJob, Job: from}), after([]byte{byte(state.KindJob)}), false, func(r state.Record) (bool, error) {
		if most--; most < 0 {
			next = r.Job
			return false, nil
		}
		take(r.Job, r.Value)
		return true, nil
	})
	return next, err
}
