package control

import (
	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// These answer questions with the scheduler itself, on the state as it is.
// They change nothing, but only the owner may call them.

func (c *Controller) input(now sched.Time) sched.Input {
	in := sched.Input{Now: now, State: c.queue.sched, Shares: c.shares(now)}
	if c.queue.plan != nil {
		in.Last = c.queue.plan.Reservations
	}
	return in
}

// shares are worked out only where a decision depends on them: they cost as
// much as there are users.
func (c *Controller) shares(now sched.Time) *accounting.Shares {
	budget := false
	for _, a := range c.cfg.Accounting.Tree { // any of them: order does not matter
		budget = budget || a.Budget > 0
	}
	if c.cfg.Policy.Weights.FairShare == 0 && !budget {
		return nil
	}
	c.ledger.shares = c.ledger.Shares(int64(now))
	return c.ledger.shares
}

// WouldStart is when and where a job would start if it were submitted now.
func (c *Controller) WouldStart(now sched.Time, o state.Owner, req *state.Request) (sched.Estimate, error) {
	return sched.WouldStart(c.input(now), schedJob(schedID(c.jobs.next), &o, req, now))
}

// Explain is why a queued job waits: every reason, and what each node has.
func (c *Controller) Explain(now sched.Time, n job.Number) sched.Explanation {
	if j := c.job(n); j != nil && j.Cron != nil {
		return sched.Explanation{Job: schedID(n), Waiting: true, Estimate: sched.Estimate{Known: true, At: j.Cron.Next, Reasons: []sched.Reason{j.Cron.Reason()}}}
	}
	out := sched.Explain(c.input(now), schedID(n))
	if j := c.job(n); j != nil && j.Waits.Unmet() {
		e := &out.Estimate
		e.Known, e.At, e.Ranks = false, 0, nil
		for i, r := range e.Reasons {
			if r.Code == sched.CodeBeginTime {
				e.Reasons[i] = sched.Reason{Code: sched.CodeDependency, Text: j.Waits.Text()}
			}
		}
	}
	return out
}

// Position is a queued job's place in the order of priority, 1 the first, and
// how many jobs have one; 0 where it does not wait for room.
func (c *Controller) Position(now sched.Time, n job.Number) (place, of int) {
	return c.input(now).Position(schedID(n))
}

// Priorities are the terms of the priority of those of the jobs that wait for
// room.
func (c *Controller) Priorities(now sched.Time, numbers []job.Number) map[job.Number]sched.Factors {
	ids := make([]sched.JobID, len(numbers))
	for i, n := range numbers {
		ids[i] = schedID(n)
	}
	out := make(map[job.Number]sched.Factors, len(ids))
	for id, f := range c.input(now).Priorities(ids) {
		out[NumberOf(id)] = f
	}
	return out
}

// Advise is what would let a queued job start sooner, tried out by the
// scheduler itself.
func (c *Controller) Advise(now sched.Time, n job.Number) []sched.Advice {
	return sched.Advise(c.input(now), schedID(n))
}
