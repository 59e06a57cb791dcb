// Package standby keeps jobs as their records are, and those that wait in the scheduler's queue: all of a
// controller that costs by its jobs. Who follows another controller keeps it in step with what that one stores, and
// need not read any of it to take up. It decides nothing, and knows neither nodes nor rules: these are few, and come
// when a controller is made of it, which owns it from then on. It is pure.
package standby

import (
	"errors"
	"fmt"
	"strings"

	"gbatch/internal/control/picture"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Jobs are the jobs of records. Its invariant: it is the same whatever records were put in before, in whatever order, that are others now.
type Jobs struct {
	Intern *state.Interner         // what they share
	Table  state.Table             // all of them; of arrays, what is in their own records is not there yet
	ByUUID map[[16]byte]job.Number // all of them
	Sched  *sched.State            // has those that wait and are no tasks: what a task waits for depends on its array
}

// New has none.
func New() *Jobs {
	s, err := sched.New(sched.DefaultPolicy())
	if err != nil {
		panic(err) // it is ours
	}
	return &Jobs{Intern: &state.Interner{}, ByUUID: map[[16]byte]job.Number{}, Sched: s}
}

// Put takes in what the record of a job is now; without a value there is none any more. An error leaves it without that job.
func (s *Jobs) Put(n job.Number, value []byte) error {
	if old := s.Table.Get(n); old != nil {
		s.drop(old, value == nil)
	}
	if value == nil {
		return nil
	}
	j, err := s.Intern.Job(value)
	if err == nil && j.Number != n {
		err = errors.New("it is another job's")
	}
	if err == nil && Waits(j) && j.Parent == 0 {
		err = s.Sched.Enqueue(picture.Queued(j, nil))
	}
	if err != nil {
		return fmt.Errorf("read the record of job %d: %w", n, err)
	}
	if j.State == job.OnHold && j.Reason == job.ByAdmin && !strings.HasPrefix(j.Text, "held by ") {
		j.Reason = job.Server // restored by a version that did not tell it from what operators hold
	}
	s.Table.Put(n, j)
	s.ByUUID[j.UUID] = n
	return nil
}

// drop takes a job out; gone: for good.
func (s *Jobs) drop(j *state.Job, gone bool) {
	s.Table.Put(j.Number, nil)
	delete(s.ByUUID, j.UUID)
	s.Sched.Dequeue(sched.JobID(j.Number))
	if gone {
		s.Table.Trim()
	}
}

// Waits says that a job waits in the scheduler's queue: arrays do by their tasks, and templates by the jobs they make.
func Waits(j *state.Job) bool { return j.State == job.Queued && j.Tasks == nil && j.Cron == nil }
