// Package follow keeps the jobs of a controller that follows another one in memory, so that to lead costs it no reading.
// It reads the records that its store has, a few at a time, and each that is applied to it since. One that has led goes on with
// what it had then. What records come to is for internal/control/standby; nothing is decided here.
package follow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"gbatch/internal/control/standby"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// How the records that are there are read: what is applied waits meanwhile. Where all are, it is looked now and then
// whether the store is another one: a member that was away for long gets a copy of another member's.
const (
	AtOnce = 200 // records
	again  = time.Second
)

// Jobs are in step with a member's store. The zero value is of one that does not follow. Its invariant: of the numbers
// below next, or all of them where next is 0, it has the jobs of the records that the store has, but for those of a
// batch that Applied is still to be told of.
type Jobs struct {
	mu    sync.Mutex
	jobs  *standby.Jobs // nil: this member does not follow
	of    *store.Store  // whose they are; nil: of none yet
	next  job.Number    // from where on the records are to be read
	reads int           // records that were read

	// Of a member that leads: the jobs whose records were applied since what it has published last, and the last place of these
	// in the common log; nil: it does not lead. Of is whose jobs it has then.
	newer map[job.Number]uint64
}

// Begin has what is there, and what is applied from now on, be read, where it is not known.
func (f *Jobs) Begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs == nil {
		f.begin(nil)
	}
}

func (f *Jobs) begin(of *store.Store) { f.jobs, f.of, f.next, f.newer = standby.New(), of, 1, nil }

// Applied is for store.Config: it is told of each record of a job as it is applied.
func (f *Jobs) Applied(place uint64, n job.Number, value []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newer != nil {
		f.newer[n] = place
	}
	if f.jobs == nil || f.of == nil || f.next > 0 && n >= f.next {
		return // it is read later, if at all
	}
	if err := f.jobs.Put(n, value); err != nil {
		f.begin(nil) // the one who leads says what it is that cannot be read
	}
}

// Read reads some more of the records that a store has, and says whether all are.
func (f *Jobs) Read(s *store.Store) (all bool, err error) {
	f.mu.Lock() // while it is held nothing is applied beyond the batch that Applied is told of next, and that is told again
	defer f.mu.Unlock()
	if f.jobs == nil {
		return true, nil
	}
	if s != f.of {
		f.begin(s)
	}
	if f.next == 0 {
		return true, nil
	}
	var bad error
	f.next, err = s.Jobs(f.next, AtOnce, func(n job.Number, value []byte) {
		f.reads++
		bad = errors.Join(bad, f.jobs.Put(n, value))
	})
	if err = errors.Join(err, bad); err != nil {
		f.begin(nil)
	}
	return f.next == 0, err
}

// Follow reads what there is, until ctx is done; read gives the store.
func (f *Jobs) Follow(ctx context.Context, read func(func(*store.Store) error) error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		all := true // of none that has come
		err := read(func(s *store.Store) (err error) {
			all, err = f.Read(s)
			return err
		})
		wait := time.Duration(0)
		if all || err != nil { // what cannot be read shows where that matters: to who leads
			wait = again
		}
		timer.Reset(wait)
	}
}

// Take gives away the jobs of a store to which nothing is applied meanwhile, for who leads from now on, and says how many had
// been read. Nothing is read any more until Begin or GoOn.
func (f *Jobs) Take(s *store.Store) (jobs *standby.Jobs, ahead int, err error) {
	ahead = f.ahead(s)
	for all := false; !all; {
		if all, err = f.Read(s); err != nil {
			return nil, 0, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	jobs, f.jobs, f.newer = f.jobs, nil, map[job.Number]uint64{}
	return jobs, ahead, nil
}

// ahead is how many jobs of a store were read.
func (f *Jobs) ahead(s *store.Store) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs == nil || f.of != s {
		f.begin(s)
	}
	return len(f.jobs.ByUUID)
}

// Published says that who leads has published all that it has stored up to a place in the common log.
func (f *Jobs) Published(through uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.newer, func(_ job.Number, place uint64) bool { return place <= through })
}

// GoOn has one follow that has led, with the jobs that it has published last; those that are unread are not among them, and it
// owns them from here on. It is called once after Take, and Begin after it. Only the records of those are read, and of jobs whose
// records were applied since: by who led next, or by this one in a turn whose end it did not see.
func (f *Jobs) GoOn(s *store.Store, jobs *standby.Jobs, unread []job.Number) error {
	f.mu.Lock() // as in Read
	defer f.mu.Unlock()
	if f.newer == nil || f.of != s {
		return nil // it is another store: all of it is to be read
	}
	for _, n := range unread {
		f.newer[n] = 0
	}
	for _, n := range slices.Sorted(maps.Keys(f.newer)) {
		value, _, err := s.Get(state.Record{Kind: state.KindJob, Job: n})
		if err == nil {
			err = jobs.Put(n, value)
		}
		if err != nil {
			return err
		}
		f.reads++
	}
	f.jobs, f.next, f.newer = jobs, 0, nil
	return nil
}

// Counts are how many jobs one that follows has, and how many records of jobs were read so far.
func (f *Jobs) Counts() (has, read int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs != nil {
		has = len(f.jobs.ByUUID)
	}
	return has, f.reads
}
