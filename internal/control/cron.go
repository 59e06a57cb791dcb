package control

import (
	"fmt"
	"slices"

	"gbatch/internal/control/picture"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// A job with a time table is a template: it waits for the next of its times,
// makes a job like it then, and waits for the one after. The scheduler never
// sees it.
//
// It is QUEUED for as long as it makes jobs. A time whose last job has not ended
// is skipped, with a line in the timeline. Of the times that passed while nobody
// could act on them, the controller being down or the template on hold, at most
// one is made up for.

// nextOf is the first time after a moment that a table names.
func nextOf(lines []string, after sched.Time) (sched.Time, error) {
	var first sched.Time
	for _, line := range lines {
		t, err := job.NextCron(line, job.Instant(after))
		if err != nil {
			return 0, err
		}
		if first == 0 || sched.Time(t) < first {
			first = sched.Time(t)
		}
	}
	return first, nil
}

// cron is the template's part of a new job; nil if it is none.
func (e Submit) cron(now sched.Time) (*state.Cron, *state.Refusal) {
	g := e.Spec.Gbatch
	if g == nil || len(g.Cron) == 0 {
		return nil, nil
	}
	next, err := nextOf(g.Cron, now)
	if err != nil {
		return nil, &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.cron", Message: err.Error()}
	}
	return &state.Cron{Lines: g.Cron, Next: next, Tasks: g.Tasks}, nil
}

// templates is those that are not over, by number, and when the first of them is
// to make its next job.
type templates struct {
	numbers []job.Number
	next    sched.Time // 0: none waits for its time
}

// add takes in a template that is not over.
func (t *templates) add(n job.Number) {
	at, _ := slices.BinarySearch(t.numbers, n)
	t.numbers = slices.Insert(t.numbers, at, n)
}

// findNext finds out when the next job is due, and forgets templates that have
// ended.
func (t *templates) findNext(jobs *jobs) {
	t.next = 0
	t.numbers = slices.DeleteFunc(t.numbers, func(n job.Number) bool {
		j := jobs.get(n)
		if j == nil || j.State.Final() {
			return true
		}
		if j.State == job.Queued && (t.next == 0 || j.Cron.Next < t.next) {
			t.next = j.Cron.Next
		}
		return false
	})
}

func (t *templates) check(jobs *jobs) error {
	if !slices.IsSorted(t.numbers) {
		return fmt.Errorf("templates %v are not in order", t.numbers)
	}
	for j := range jobs.all() {
		if _, known := slices.BinarySearch(t.numbers, j.Number); j.Cron != nil && !j.State.Final() && !known {
			return fmt.Errorf("job %d is a template that makes no jobs", j.Number)
		}
	}
	return nil
}

// templates makes the jobs that are due.
func (e Tick) templates(s *step) {
	if s.templates.next == 0 || s.now < s.templates.next {
		return
	}
	for _, n := range s.templates.numbers {
		if j := s.jobs.get(n); j != nil && j.State == job.Queued && j.Cron.Next <= s.now {
			e.make(s, j)
		}
	}
	s.templates.findNext(s.jobs)
}

// make makes a template's job, unless something speaks against it, and sets its
// next time.
func (e Tick) make(s *step, t *state.Job) {
	due := t.Cron.Next
	next, err := nextOf(t.Cron.Lines, s.now)
	must(err) // it was checked when it was submitted
	cron := *t.Cron
	cron.Next = next
	why := e.skip(s, t)
	if why != "" {
		s.jobs.change(t, "skipped a time: "+why, func(j *state.Job) { j.Cron = &cron })
		return
	}
	s.jobs.stored(t.Owner.User, amountOf(t.Cron.Tasks))
	cron.Last, cron.Made = s.jobs.next, cron.Made+1
	t = s.jobs.change(t, fmt.Sprintf("made job %d", s.jobs.next), func(j *state.Job) { j.Cron = &cron })
	j := &state.Job{
		Number: s.jobs.next, UUID: t.UUID.Derive(fmt.Sprint("time ", due)), Name: t.Name, Owner: t.Owner, Request: t.Request,
		State: job.Queued, Submitted: s.now, Since: s.now, Version: 1, Sealed: t.Sealed, Secrets: t.Secrets, Doc: t.Document(), Template: t.Number,
	}
	j.Tasks, err = tasksOf(t.Cron.Tasks)
	must(err) // it was checked when it was submitted
	j.Expected = s.queue.expect(j)
	s.jobs.add(j, fmt.Sprintf("made by job %d", t.Number))
}

// skip is why a template's time makes no job; empty: it does.
func (Tick) skip(s *step, t *state.Job) string {
	if last := s.jobs.get(t.Cron.Last); last != nil && !last.State.Final() {
		return fmt.Sprintf("job %d, made before, is %s", last.Number, last.State)
	}
	if r := s.jobs.tooMany(picture.Job(s.jobs.next, t.Owner, t.Request, s.now), t.Cron.Tasks.Len()); r != nil {
		return r.Message
	}
	if r := s.jobs.tooMuch(t.Owner.User, amountOf(t.Cron.Tasks)); r != nil {
		return r.Message
	}
	return ""
}

// template is who made a job and makes more, nil if nobody does.
func (t *jobs) template(j *state.Job) *state.Job {
	if m := t.get(j.Template); j.Template != 0 && m != nil && !m.State.Final() {
		return m
	}
	return nil
}

// keepsSealed says that what is sealed for a job is needed still when it ends:
// by who continues it, by its template, or by the job that its template made last.
func (t *jobs) keepsSealed(j *state.Job) bool {
	if j.State == job.Halted || t.template(j) != nil {
		return true
	}
	if j.Cron == nil {
		return false
	}
	last := t.get(j.Cron.Last)
	return last != nil && !last.State.Final()
}
