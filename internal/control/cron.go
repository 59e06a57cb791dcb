package control

import (
	"fmt"
	"time"

	"gbatch/internal/control/picture"
	"gbatch/internal/control/templates"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// A job with a time table is a template: it waits for the next of its times,
// makes a job like it then, and waits for the one after. The scheduler never
// sees it.
//
// It is QUEUED for as long as it makes jobs. A time whose last job has not ended
// is skipped, with a line in the timeline, or cancels that job (Replace), or makes one all the same (Overlap). Of the times that passed while nobody
// could act on them, the controller being down or the template on hold, at most
// one is made up for.

// templates makes the jobs that are due.
func (e Tick) templates(s *step) {
	if next := s.templates.Next(); next == 0 || s.now < next {
		return
	}
	for _, n := range s.templates.Due(s.now, &s.jobs.table) {
		e.make(s, s.jobs.get(n))
	}
	s.templates.FindNext(&s.jobs.table)
}

// make makes a template's job, unless something speaks against it, and sets its
// next time.
func (e Tick) make(s *step, t *state.Job) {
	due := t.Cron.Next
	next, err := templates.AfterIn(t.Cron.Lines, e.zone(t.Cron.Zone), s.now)
	must(err) // it was checked when it was submitted
	cron := *t.Cron
	cron.Next = next
	why := e.skip(s, t)
	if why != "" {
		s.jobs.change(t, "skipped a time: "+why, func(j *state.Job) { j.Cron = &cron })
		return
	}
	waits := e.replace(s, t)
	s.jobs.stored(t.Owner.User, amountOf(t.Cron.Tasks))
	cron.Last, cron.Made = s.jobs.next, cron.Made+1
	t = s.jobs.change(t, fmt.Sprintf("made job %d", s.jobs.next), func(j *state.Job) { j.Cron = &cron })
	j := &state.Job{
		Number: s.jobs.next, UUID: t.UUID.Derive(fmt.Sprint("time ", due)), Name: t.Name, Owner: t.Owner, Request: t.Request,
		State: job.Queued, Submitted: s.now, Since: s.now, Version: 1, Sealed: t.Sealed, Secrets: t.Secrets, Doc: t.Document(), Template: t.Number,
		Waits: waits,
	}
	j.Tasks, err = tasksOf(t.Cron.Tasks)
	must(err) // it was checked when it was submitted
	j.Expected = s.queue.expect(j)
	s.jobs.add(j, fmt.Sprintf("made by job %d", t.Number))
}

// replace cancels the job that a template made last, if its jobs replace each other,
// and is what the next one waits for then.
func (Tick) replace(s *step, t *state.Job) *state.Waits {
	last := s.jobs.get(t.Cron.Last)
	if !t.Cron.Replace || last == nil || last.State.Final() {
		return nil
	}
	Act{Action: Cancel, By: t.Owner.User}.cancel(s, last)
	if last = s.jobs.get(last.Number); last.State.Final() {
		return nil
	}
	return &state.Waits{Needs: []state.Need{{Type: job.AfterAny, Job: last.Number}}}
}

// zone has the rules by which a template or reservation goes; nil: UTC.
func (e Tick) zone(name string) *time.Location {
	if name == "" || e.Zone == nil {
		return nil
	}
	return e.Zone(name)
}

// skip is why a template's time makes no job; empty: it does.
func (Tick) skip(s *step, t *state.Job) string {
	if last := s.jobs.get(t.Cron.Last); last != nil && !last.State.Final() && !t.Cron.Replace && !t.Cron.Overlap {
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
