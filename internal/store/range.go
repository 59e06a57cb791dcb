package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Place is a record's in the order of kinds that sort by sequence: KindEnded,
// whose jobs follow each other by end and number, and KindDay.
type Place struct {
	Seq uint64
	Job job.Number // KindEnded only
}

// Span is what lies from one place (included) to another (not included), in order
// or from the last back.
type Span struct {
	From, To Place
	Backward bool
}

// Range gives the records of a kind in a span, until take says that it has
// enough. The record's value is only valid during the call.
func (s *Store) Range(kind state.Kind, in Span, take func(state.Record) (more bool, err error)) error {
	return s.walk(placeKey(kind, in.From), placeKey(kind, in.To), in.Backward, take)
}

// walk is Range from one key to another, as the records are now.
func (s *Store) walk(from, to []byte, backward bool, take func(state.Record) (more bool, err error)) error {
	return walk(s.db, &pebble.IterOptions{LowerBound: from, UpperBound: to}, backward, take)
}

// walk is Range from one key to another. All that reads more than one record
// comes by here.
func walk(db pebble.Reader, in *pebble.IterOptions, backward bool, take func(state.Record) (more bool, err error)) (err error) {
	defer closed(&err)
	it, err := db.NewIter(in)
	if err != nil {
		return err
	}
	first, next := it.First, it.Next
	if backward {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		r, err := record(it.Key(), it.Value())
		more := false
		if err == nil {
			more, err = take(r)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !more {
			break
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("read from store: %w: a file of it is damaged: restore a backup by `gctld restore`", err)
	}
	return nil
}

func placeKey(kind state.Kind, p Place) []byte {
	k := key(state.Record{Kind: state.KindEnded, Seq: p.Seq, Job: p.Job})
	k[0] = byte(kind)
	if kind == state.KindDay {
		k = k[:9]
	}
	return k
}

// indexEnded makes the index of jobs by their end, which format 1 has not.
func (s *Store) indexEnded() error {
	const most = 4096 // records of one batch
	var batch []state.Record
	add := func(r state.Record) error {
		e, over, err := state.IndexEnded(r)
		if err != nil || !over {
			return err
		}
		if batch = append(batch, e); len(batch) < most {
			return nil
		}
		err = s.Commit(batch)
		batch = batch[:0]
		return err
	}
	for _, k := range []state.Kind{state.KindHistory, state.KindJob} {
		if err := s.scan([]byte{byte(k)}, add); err != nil {
			return fmt.Errorf("index jobs by their end: %w", err)
		}
	}
	return s.Commit(batch)
}

// ReadPast gives what is known of nodes and of jobs, those of long ago too, out
// of a store that no controller has open, and changes nothing in it. A record's
// value is only valid during the call.
func ReadPast(cfg Config, take func(state.Record) error) (err error) {
	defer recovered(&err)
	o := options(cfg)
	o.ReadOnly, o.ErrorIfNotExists = true, true
	if cfg.FS != nil {
		o.FS = cfg.FS
	} else {
		o.FS = nil
	}
	db, err := openDB(cfg.Dir, o)
	switch {
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return fmt.Errorf("read store %s: there is none: give a controller's directory, or a backup", cfg.Dir)
	case err != nil:
		return fmt.Errorf("read store %s: %w", cfg.Dir, err)
	}
	s := &Store{db: db, cfg: cfg}
	format, err := s.meta(keyFormat)
	if err == nil && format > formatNumber {
		err = fmt.Errorf("its format is %d and this program knows up to %d", format, formatNumber)
	}
	for _, k := range []state.Kind{state.KindNode, state.KindHistory, state.KindJob} {
		if err == nil {
			err = s.scan([]byte{byte(k)}, take)
		}
	}
	if err != nil {
		err = fmt.Errorf("read store %s: %w", cfg.Dir, err)
	}
	return errors.Join(err, db.Close())
}

// closed makes an error of the panic by which pebble answers who reads from a store that was closed: of several controllers one
// that leads no more may get another's store while it still answers.
func closed(err *error) {
	why := recover()
	if why == nil {
		return
	}
	if e, is := why.(error); !is || !errors.Is(e, pebble.ErrClosed) {
		panic(why)
	}
	*err = errors.Join(*err, errClosed)
}

var errClosed = errors.New("read from store: it was closed, as this controller ends or another one leads")
