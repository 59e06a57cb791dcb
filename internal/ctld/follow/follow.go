// Package follow keeps the jobs of a controller that follows another one in memory, so that to lead costs it no reading.
// It reads the records that its store has, a few at a time, and each that is applied to it since. What they come to is for
// internal/control/standby; nothing is decided here.
package follow

import (
	"context"
	"errors"
	"sync"
	"time"

	"gbatch/internal/control/standby"
	"gbatch/internal/job"
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
	mu   sync.Mutex
	jobs *standby.Jobs // nil: this member does not follow
	of   *store.Store  // whose they are; nil: of none yet
	next job.Number    // from where on the records are to be read
}

// Begin has what is there, and what is applied from now on, be read.
func (f *Jobs) Begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(nil)
}

func (f *Jobs) begin(of *store.Store) { f.jobs, f.of, f.next = standby.New(), of, 1 }

// Applied is for store.Config: it is told of each record of a job as it is applied.
func (f *Jobs) Applied(n job.Number, value []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
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
	f.next, err = s.Jobs(f.next, AtOnce, func(n job.Number, value []byte) { bad = errors.Join(bad, f.jobs.Put(n, value)) })
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

// Take gives away the jobs of a store to which nothing is applied meanwhile, and says how many had been read. Nothing is
// read any more until Begin.
func (f *Jobs) Take(s *store.Store) (jobs *standby.Jobs, ahead int, err error) {
	ahead = f.ahead(s)
	for all := false; !all; {
		if all, err = f.Read(s); err != nil {
			return nil, 0, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	jobs, f.jobs, f.of = f.jobs, nil, nil
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
