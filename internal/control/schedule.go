package control

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Due says whether something changed since the last round that a decision may
// depend on.
func (c *Controller) Due() bool { return c.queue.due }

// Schedule runs one round: it asks sched.Decide and does what the plan says.
// Its effects have no answer.
func (c *Controller) Schedule(now sched.Time) Effects {
	c.out = Effects{noRecords: c.cfg.NoRecords}
	c.queue.due = false
	s := &step{c, now}
	plan := sched.Decide(c.input(now))
	for _, r := range plan.Rejects {
		j := c.job(NumberOf(r.Job))
		reason := job.InteractiveNoRoom
		if r.Reason.Code == sched.CodeDeadline {
			reason = job.MaxQueued
			if t := j.Request.NotAfter; t > 0 && now >= t {
				reason = job.NotAfter
			}
		}
		if a := c.arrays.Of(j.Parent); a != nil { // no task has started in time
			a.Whole = &state.Ending{Then: job.Failed, Reason: reason, Text: r.Reason.Text}
		}
		s.change(j, r.Reason.Text, func(j *state.Job) { j.State, j.Reason, j.Text = job.Failed, reason, r.Reason.Text })
	}
	for _, h := range plan.Halts {
		s.halt(h)
	}
	for _, start := range plan.Starts {
		s.assign(start)
	}
	for _, r := range plan.Reservations {
		if n := NumberOf(r.Job); c.queue.promised[n] == 0 && r.At > now {
			c.queue.promised[n] = r.At
		}
	}
	// What the plan itself did is in it already: it leaves nothing to decide,
	// unless it freed something.
	c.queue.due = len(plan.Rejects) > 0
	c.queue.plan, c.queue.planned = &plan, now
	s.planImages()
	s.finish()
	return c.out
}

// Plan is the last round's plan and its time; nil before the first.
func (c *Controller) Plan() (*sched.Plan, sched.Time) { return c.queue.plan, c.queue.planned }
