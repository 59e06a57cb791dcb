package control

import (
	"fmt"
	"slices"

	"gbatch/internal/control/amend"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// longer says why a job that runs cannot have a longer time limit without an
// operator's word: somebody else was promised what it holds, or is to have it.
// Then a longer limit costs nobody anything, as when no one waits.
func (s *step) longer(j *state.Job, limit sched.Time) *state.Refusal {
	denied := func(format string, args ...any) *state.Refusal {
		return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf(format, args...), Hint: "ask for less; an operator may raise it all the same"}
	}
	if limit > s.cfg.MaxRun && s.cfg.MaxRun > 0 {
		return denied("job %d would run for %s, and jobs here run for %s at most", j.Number, job.Duration(limit/sched.Second), job.Duration(s.cfg.MaxRun/sched.Second))
	}
	if s.cfg.Policy.Timed() && len(j.Attempt.Ranks[0].Alloc.GPUs) > 0 {
		return denied("the GPU minutes of running jobs are bounded here, and job %d began with fewer", j.Number)
	}
	from, until := j.Attempt.Start+j.LimitLeft(), j.Attempt.Start+j.WithLimit(limit).LimitLeft()
	plan := s.promises()
	if other := plan.PromisedLicenses(j.Request.Shape.Licenses, from, until); other > 0 {
		return denied("job %d was promised licences that job %d holds, from before job %d would end", other, j.Number, j.Number)
	}
	for _, r := range j.Attempt.Ranks {
		if w := s.windowOn(r.Alloc.Node, from, until); w != "" {
			return denied("%s is reserved (%s) before job %d would end", r.Alloc.Node, w, j.Number)
		}
		if other := plan.Promised(amend.Held(j.Attempt, r.Alloc.Node), from, until); other > 0 {
			return denied("job %d was promised what job %d holds on %s, from before job %d would end", other, j.Number, r.Alloc.Node, j.Number)
		}
	}
	return nil
}

// windowOn is a reservation of a node that begins between two moments.
func (s *step) windowOn(name string, from, until sched.Time) string {
	for _, w := range s.queue.windows {
		if next := w.Next(from - 1); next.Start >= from && next.Start < until && slices.Contains(w.Nodes, name) {
			return w.Name
		}
	}
	return ""
}

// promises are what the last plan has.
func (s *step) promises() amend.Plan {
	p := amend.Plan{Free: s.freeOn, Job: s.jobs.get}
	if s.queue.plan != nil {
		p.Reservations = s.queue.plan.Reservations
	}
	return p
}
