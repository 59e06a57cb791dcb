package control

import (
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Due says whether something changed since the last round that a decision may
// depend on.
func (c *Controller) Due() bool { return c.dirty }

// Schedule runs one round: it asks sched.Decide and does what the plan says.
// Its effects have no answer.
func (c *Controller) Schedule(now sched.Time) Effects {
	c.out = Effects{}
	c.dirty = false
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
		if n := NumberOf(r.Job); c.promised[n] == 0 && r.At > now {
			c.promised[n] = r.At
		}
	}
	// What the plan itself did is in it already: it leaves nothing to decide,
	// unless it freed something.
	c.dirty = len(plan.Rejects) > 0
	c.plan, c.planned = &plan, now
	s.planImages()
	s.finish()
	return c.out
}

// Plan is the last round's plan and its time; nil before the first.
func (c *Controller) Plan() (*sched.Plan, sched.Time) { return c.plan, c.planned }

// assign gives a job its resources and its nodes the order to run it.
func (c *step) assign(s sched.Start) {
	j := c.job(NumberOf(s.Job))
	if t := c.promised[j.Number]; t > 0 {
		c.out.Missed = append(c.out.Missed, c.now-t)
		delete(c.promised, j.Number)
	}
	at := &state.Attempt{Attempt: j.Tries + 1, Start: c.now}
	switch {
	case j.Attempt != nil:
		at.Image = j.Attempt.Image
	case j.Restart != nil:
		at.Image = j.Restart.Image
	}
	if j.Request.LimitScope == job.LimitJob {
		at.Limit = j.Request.Limit
		if end := c.limitEnd(j); end > 0 {
			at.Limit = max(end-c.now, 1)
		}
	}
	names := make([]string, len(s.Ranks))
	for i, a := range s.Ranks {
		n := c.node(a.Node)
		at.Ranks = append(at.Ranks, state.Rank{Alloc: a, Phase: node.PhaseAssigned, Instance: n.Instance, Model: n.ModelOf(a), Cluster: n.Inventory.Cluster})
		names[i] = a.Node
	}
	waited := c.now - j.Since
	j = c.change(j, "assigned to "+strings.Join(names, ", "), func(j *state.Job) {
		j.State, j.Attempt, j.Tries = job.Assigned, at, j.Tries+1
		j.Reason, j.Text = job.None, ""
	})
	must(c.sched.Start(c.running(j)))
	c.charge(j, c.ledger.Begin)
	c.ledger.CountStart(charges(j)[0], int64(waited))
	for _, a := range s.Ranks {
		c.arrive(a.Node, j.Number)
	}
}
