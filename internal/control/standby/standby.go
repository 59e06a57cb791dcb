// Package standby keeps jobs as their records are, and those that wait in the scheduler's queue: all of a
// controller that costs by its jobs. Who follows another controller keeps it in step with what that one stores, and
// need not read any of it to take up. It decides nothing, and knows neither nodes nor rules: these are few, and come
// when a controller is made of it, which owns it from then on. It is pure.
package standby

import (
	"errors"
	"fmt"
	"slices"
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
	if err == nil {
		err = s.take(j)
	}
	if err != nil {
		return fmt.Errorf("read the record of job %d: %w", n, err)
	}
	return nil
}

// take takes in a job that nobody else has.
func (s *Jobs) take(j *state.Job) error {
	if Waits(j) && j.Parent == 0 {
		if err := s.Sched.Enqueue(picture.Queued(j, nil)); err != nil {
			return err
		}
	}
	if j.State == job.OnHold && j.Reason == job.ByAdmin && strings.HasSuffix(j.Text, ", on hold: it may have run since") {
		j.Reason = job.Server // restored by a version that did not tell it from what operators hold
	}
	s.Table.Put(j.Number, j)
	s.ByUUID[j.UUID] = j.Number
	return nil
}

// Of has the jobs that a controller has published last, and shared is what they share: that controller has ended. Of the jobs of
// which more was shown than stored it has none: they are named, and their records are to be put in.
func Of(v *state.View, shared *state.Interner) (s *Jobs, unread []job.Number, err error) {
	s = New()
	s.Intern = shared
	for j := range v.All() {
		if beyondRecord(j) {
			unread = append(unread, j.Number)
			continue
		}
		own := *j // who looks at the view still has that one, and what is made of these writes into them
		own.Ref = sched.Ref{}
		if j.Tasks != nil {
			own.Tasks = j.Tasks.InRecord()
		}
		if err := s.take(&own); err != nil {
			return nil, nil, fmt.Errorf("keep job %d: %w", j.Number, err)
		}
	}
	return s, unread, nil
}

// beyondRecord says that a job of a controller has what its record does not.
func beyondRecord(j *state.Job) bool {
	return j.Shown || j.Attempt != nil && slices.ContainsFunc(j.Attempt.Ranks, func(r state.Rank) bool { return r.Progress != "" })
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
