package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"gbatch/internal/state"
)

// ReadPast gives what is known of nodes and of jobs, those of long ago too, out
// of a store that no controller has open, and changes nothing in it. A record's
// value is only valid during the call.
func ReadPast(cfg Config, take func(state.Record) error) error {
	o := options(cfg)
	o.ReadOnly, o.ErrorIfNotExists = true, true
	if cfg.FS != nil {
		o.FS = cfg.FS
	} else {
		o.FS = nil
	}
	db, err := pebble.Open(cfg.Dir, o)
	switch {
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return fmt.Errorf("read store %s: there is none: give a controller's directory, or a backup", cfg.Dir)
	case err != nil:
		return fmt.Errorf("read store %s: %w (a controller that runs keeps it locked: give a backup)", cfg.Dir, err)
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
