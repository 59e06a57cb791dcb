package scrub

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"gbatch/internal/ctld/fsck"
	"gbatch/internal/pace"
	"gbatch/internal/state"
)

// Config is what is looked through, and how.
type Config struct {
	Dir   string // of the controller
	Store interface {
		Scrub(dir string, take func(state.Record) error) (damage, err error)
	}
	// Mend is what to do about damage of the store, of one of several controllers; empty: what one alone can do.
	Mend string

	// Trees looks at uploaded directories, and says what of them was damaged and is
	// given up. It calls pace before so many bytes are read. Nil: there are none.
	Trees func(pace func(bytes int64) error) (gone []string, err error)
	// Logs looks at kept logs likewise, and says which are damaged.
	Logs  func(pace func(bytes int64) error) (damaged []string, err error)
	Spare func() bool // the disk has room for a copy of the store's newest part

	Done func(at time.Time, found int) // a pass has ended, which found so much damage
	Now  func() time.Time
	Log  *slog.Logger

	Wait func(ctx context.Context, d time.Duration) error
}

const (
	firstAfter = 10 * time.Minute // so that a start has its disk to itself
	every      = 24 * time.Hour
	perSecond  = 8 << 20 // bytes read
	maxSaid    = 20      // records of one pass that the log names
)

// copying is the name of the copy of the store that is being read.
const copying = "scrub.tmp"

// Scrub is the work. Its zero value with a Config is ready.
type Scrub struct{ Config }

// Run makes passes until ctx is done.
func (s *Scrub) Run(ctx context.Context) {
	for wait := firstAfter; s.Wait(ctx, wait) == nil; wait = every {
		if !s.Spare() {
			s.Log.Warn("what is stored is not looked through: the disk is nearly full")
			continue
		}
		found, err := s.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.Log.Error("what is stored could not be looked through; it is tried again in a day", "error", err)
			continue
		}
		s.Done(s.Now(), found)
		s.Log.Info("what is stored was looked through", "damaged", found)
	}
}

// pass looks at everything once and says how many damaged things it found. Each of them, up to a
// bound, is in the log with what to do about it.
func (s *Scrub) pass(ctx context.Context) (found int, err error) {
	dir := filepath.Join(s.Dir, copying)
	if err := os.RemoveAll(dir); err != nil { // of a controller that was killed
		return 0, err
	}
	defer os.RemoveAll(dir)
	p := pace.New(ctx, perSecond, s.Wait)
	damage, err := s.Store.Scrub(dir, func(r state.Record) error {
		if err := fsck.Readable(r); err != nil {
			if found++; found <= maxSaid {
				s.Log.Error("a stored record cannot be read: "+cmp.Or(s.Mend, "restore a backup, or stop gctld and take the record out by `gctld fsck --quarantine`"), "record", r.Where(), "error", err)
			}
		}
		return p.Read(int64(len(r.Value)) + perRecord)
	})
	if err != nil {
		return found, fmt.Errorf("read the store: %w", err)
	}
	if damage != nil {
		found++
		s.Log.Error("the store is damaged, and the next start of gctld may be refused: "+cmp.Or(s.Mend, "make a copy of what is there, and restore a backup by `gctld restore`"), "error", damage)
	}
	for _, of := range []struct {
		verify     func(pace func(bytes int64) error) ([]string, error)
		what, says string
	}{
		{s.Trees, "uploaded directories", "an uploaded directory is damaged and was given up: its user brings it again by submitting again"},
		{s.Logs, "kept logs", "a kept log is damaged: whoever reads it is told where, and nothing else is to be done"},
	} {
		if of.verify == nil {
			continue
		}
		list, err := of.verify(p.Read)
		for i, what := range list {
			if found++; i < maxSaid {
				s.Log.Error(of.says, "what", what)
			}
		}
		if err != nil {
			return found, fmt.Errorf("read %s: %w", of.what, err)
		}
	}
	return found, nil
}

// perRecord is about what a record takes beside its value.
const perRecord = 64
