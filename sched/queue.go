package sched

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/sched/due"
)

// The queue costs by the classes of interchangeable jobs, not by the jobs. Jobs
// of a class differ in age only, so they keep their order for ever, and each
// class is a list of its own by eligible time, then number. Classes that are
// the same to placement make up a jobKind: when a job of a kind finds no room,
// none of the others does in that round.

// entry is a waiting job: what it does not share with its class.
type entry struct {
	id        JobID
	submitted Time
	since     Time // eligible since: its age counts from there
	class     *class
	name      string
	rare      *rare // what most jobs do not ask for, nil if this one does not
}

type rare struct{ notBefore, notAfter, maxQueued Time }

// Enqueue adds a waiting job. It fails if the job is malformed; a job of the
// same id that waits already is replaced, one that runs is an error.
func (s *State) Enqueue(j Job) error {
	if err := j.Validate(); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	if s.running[j.ID] != nil {
		return fmt.Errorf("enqueue: job %d: it is running", j.ID)
	}
	s.Dequeue(j.ID)
	c := s.classOf(&j)
	e := &entry{id: j.ID, submitted: j.Submitted, since: j.Since(), class: c, name: j.Name}
	if j.NotBefore != 0 || j.NotAfter != 0 || j.MaxQueued != 0 {
		e.rare = &rare{j.NotBefore, j.NotAfter, j.MaxQueued}
	}
	c.add(e)
	s.waiting[j.ID] = e
	c.shape.Submitted++
	c.eachTally(func(t *tally) { t.waiting++ })
	if d := j.Deadline(); d < Never {
		s.due.Add(due.Moment{At: d, Job: j.ID})
	}
	return nil
}

// Dequeue takes a waiting job out. It reports whether the job waited.
func (s *State) Dequeue(id JobID) bool {
	e := s.waiting[id]
	if e == nil {
		return false
	}
	c := e.class
	delete(s.waiting, id)
	c.shape.Submitted--
	c.eachTally(func(t *tally) {
		t.waiting--
		s.dropTally(t)
	})
	c.drop(e)
	if c.live == 0 {
		s.dropClass(c)
	}
	s.due.Trim(len(s.waiting), s.counts)
	return true
}

// counts says that a deadline is that of a waiting job.
func (s *State) counts(d due.Moment) bool {
	e := s.waiting[d.Job]
	return e != nil && e.deadline() == d.At
}

// Waiting is a copy of a waiting job, and whether it waits.
func (s *State) Waiting(id JobID) (Job, bool) {
	e := s.waiting[id]
	if e == nil {
		return Job{}, false
	}
	return e.job(), true
}

func (e *entry) job() Job {
	c := e.class
	j := Job{ID: e.id, Project: c.account.project, User: c.account.user, QOS: c.account.qos, Name: e.name, Shape: &c.shape.Shape,
		Submitted: e.submitted, Limit: c.limit, LimitMin: c.limitMin, MinRun: c.minRun, Predicted: c.predicted, Priority: c.priority,
		Interactive: c.interactive, Restartable: c.restartable, Bucket: c.bucket(), BucketMax: c.bucketMax(),
		Reservations: slices.Clone(c.names())}
	if e.rare != nil {
		j.NotBefore, j.NotAfter, j.MaxQueued = e.rare.notBefore, e.rare.notAfter, e.rare.maxQueued
	}
	return j
}

func (e *entry) deadline() Time {
	if e.rare == nil {
		return Never
	}
	j := Job{Submitted: e.submitted, NotAfter: e.rare.notAfter, MaxQueued: e.rare.maxQueued}
	return j.Deadline()
}

func compareEntries(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.id, b.id))
}
