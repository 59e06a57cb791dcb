package store

import (
	"time"

	"github.com/cockroachdb/pebble/v2"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store/floor"
)

// A start that finds its file apart from the store, as it made it in this boot of the machine, knows by it that the
// store is the newest. Any other, as the first one after a boot, may have an older copy, and the jobs that
// were submitted since that was made may have any numbers after its own. So many are left out that they have not.

const (
	// leftOut is how many numbers may have been given in no time.
	leftOut = 100_000
	// leftOutPerSecond is how many of a second more may have been given over a long time.
	leftOutPerSecond = 100
	// longAway is how old a copy is taken to be whose last commit is later than now.
	longAway = 30 * 24 * time.Hour
	// clockOff is by how much the clock may be behind the last commit all the same, as before it is set after a boot.
	clockOff = time.Minute
)

// leaveOut has a start give no number that may have been given, if it cannot know.
func (s *Store) leaveOut(b *pebble.Batch) error {
	if s.cfg.Recent == "" || s.mark.Count == 0 || s.isNewest() {
		return nil
	}
	if _, restored, err := s.Get(state.Record{Kind: state.KindRestored}); err != nil || restored {
		return err // which leaves out numbers itself
	}
	last, err := s.lastNumber()
	if err != nil {
		return err
	}
	at, err := s.meta(keyTime)
	if err != nil {
		return err
	}
	away := time.Duration(0) // of an earlier version's store it is not known
	if at > 0 {
		away = s.cfg.Now().Sub(time.Unix(int64(at), 0))
	}
	if away < -clockOff {
		away = longAway
	}
	next := last + 1 + leftOut + job.Number(max(0, away)/time.Second)*leftOutPerSecond
	if s.cfg.Log != nil {
		s.cfg.Log.Warn("numbers of jobs are left out: this start cannot know whether the directory is an older copy, as the first one after a boot of the machine or on another one; none is given twice",
			"last", last, "next", next, "last_commit_ago", max(0, away).String())
	}
	return b.Set(key(state.Record{Kind: state.KindFloor, Job: next}), []byte("{}"), nil)
}

// isNewest says whether the file apart from the store shows that nothing was committed after what is here. Of
// who was killed the last commit may not be in the file.
func (s *Store) isNewest() bool {
	m, found, err := floor.Read(s.cfg.FS, s.cfg.Recent)
	return err == nil && found && m.ID == s.mark.ID && s.mark.Count-m.Count <= 1 && s.cfg.Boot != "" && floor.IsHere(s.cfg.FS, s.cfg.Recent, s.cfg.Boot)
}

// lastNumber is the highest number that jobs have, or that must not be given any more.
func (s *Store) lastNumber() (last job.Number, err error) {
	for _, k := range []state.Kind{state.KindJob, state.KindHistory} {
		err = s.Newest(k, func(r state.Record) (bool, error) {
			last = max(last, r.Job)
			return false, nil
		})
		if err != nil {
			return 0, err
		}
	}
	return last, s.Newest(state.KindFloor, func(r state.Record) (bool, error) {
		last = max(last, r.Job-1)
		return false, nil
	})
}
