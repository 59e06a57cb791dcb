package control

import (
	"fmt"

	"gbatch/internal/control/effects"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Due says whether something changed since the last round that a decision may
// depend on.
func (c *Controller) Due() bool { return c.queue.due }

// Schedule runs one round: it asks sched.Decide and does what the plan says.
// Its effects have no answer.
func (c *Controller) Schedule(now sched.Time) effects.Set {
	s := c.begin(now)
	s.queue.due = false
	plan := sched.Decide(s.queue.input(now))
	for _, r := range plan.Rejects {
		j := s.jobs.get(job.Number(r.Job))
		reason := job.InteractiveNoRoom
		if r.Reason.Code == sched.CodeDeadline {
			reason = job.MaxQueued
			if t := j.Request.NotAfter; t > 0 && now >= t {
				reason = job.NotAfter
			}
		}
		if a := s.arrays.Of(j.Parent); a != nil { // no task has started in time
			a.Whole = &state.Ending{Then: job.Failed, Reason: reason, Text: r.Reason.Text}
		}
		s.jobs.end(j, job.Failed, reason, r.Reason.Text)
	}
	for _, h := range plan.Halts {
		if j := s.jobs.get(job.Number(h.Job)); j.Ending == nil && j.State.Active() {
			s.attempts.halt(j, job.Preempted, fmt.Sprintf("halted to make room for job %d", h.For))
		}
	}
	for _, start := range plan.Starts {
		s.attempts.assign(start)
	}
	s.queue.promise(plan.Reservations)
	s.ahead(&plan)
	// What the plan itself did is in it already: it leaves nothing to decide,
	// unless it freed something.
	s.queue.due = len(plan.Rejects) > 0
	s.queue.plan, s.queue.planned = &plan, now
	s.nodes.planImages(plan.Reservations)
	return s.finish()
}

// Plan is the last round's plan and its time; nil before the first.
func (c *Controller) Plan() (*sched.Plan, sched.Time) { return c.queue.plan, c.queue.planned }
