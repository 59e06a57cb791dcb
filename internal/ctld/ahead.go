package ctld

import (
	"context"
	"sync"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// How a controller that follows reads the records of jobs ahead: those that are there when it begins, and again
// after a while, as it may have got another member's store; whatever is applied meanwhile it reads at once.
const (
	aheadAtOnce = 500 // records
	aheadAgain  = time.Minute
)

// ahead is what a controller that follows has read of jobs, so that it leads sooner.
type ahead struct {
	mu   sync.Mutex
	jobs *state.Ahead // nil: it does not follow
}

// applied is told each record of a job.
func (a *ahead) applied(n job.Number, value []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jobs != nil {
		a.jobs.Put(n, value)
	}
}

// begin has what is applied from now on read ahead.
func (a *ahead) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs = state.NewAhead()
}

// take gives away what was read.
func (a *ahead) take() *state.Ahead {
	a.mu.Lock()
	defer a.mu.Unlock()
	jobs := a.jobs
	a.jobs = nil
	return jobs
}

// follow reads the records that are there, until ctx is done; read gives the store. One that cannot be read shows
// where that matters: to who leads.
func (a *ahead) follow(ctx context.Context, read func(func(*store.Store) error) error) {
	again := time.NewTimer(0)
	defer again.Stop()
	for next := job.Number(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		err := read(func(s *store.Store) (err error) {
			next, err = s.Jobs(next, aheadAtOnce, a.applied)
			return err
		})
		wait := time.Duration(0)
		if err != nil || next == 0 {
			next, wait = 0, aheadAgain
		}
		again.Reset(wait)
	}
}
