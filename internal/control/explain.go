package control

import (
	"gbatch/internal/control/picture"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// These answer questions with the scheduler itself, on the state as it is.
// They change nothing, but only the owner may call them.

// WouldStart is when and where a job would start if it were submitted now.
func (c *Controller) WouldStart(now sched.Time, o state.Owner, req *state.Request) (sched.Estimate, error) {
	return sched.WouldStart(c.queue.input(now), picture.Job(c.jobs.next, &o, req, now))
}

// Explain is why a queued job waits: every reason, and what each node has.
func (c *Controller) Explain(now sched.Time, n job.Number) sched.Explanation {
	if j := c.jobs.get(n); j != nil && j.Cron != nil {
		return sched.Explanation{Job: sched.JobID(n), Waiting: true, Estimate: sched.Estimate{Known: true, At: j.Cron.Next, Reasons: []sched.Reason{j.Cron.Reason()}}}
	}
	out := sched.Explain(c.queue.input(now), sched.JobID(n))
	if j := c.jobs.get(n); j != nil && j.Waits.Unmet() {
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
	return c.queue.input(now).Position(sched.JobID(n))
}

// Priorities are the terms of the priority of those of the jobs that wait for
// room.
func (c *Controller) Priorities(now sched.Time, numbers []job.Number) map[job.Number]sched.Factors {
	ids := make([]sched.JobID, len(numbers))
	for i, n := range numbers {
		ids[i] = sched.JobID(n)
	}
	out := make(map[job.Number]sched.Factors, len(ids))
	for id, f := range c.queue.input(now).Priorities(ids) {
		out[job.Number(id)] = f
	}
	return out
}

// Advise is what would let a queued job start sooner, tried out by the
// scheduler itself.
func (c *Controller) Advise(now sched.Time, n job.Number) []sched.Advice {
	return sched.Advise(c.queue.input(now), sched.JobID(n))
}
