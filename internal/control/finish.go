package control

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// endAttempt closes an attempt whose ranks have all ended: the resources are free,
// the ledger is charged in the same step, and the job ends or waits again.
func (c *step) endAttempt(j *state.Job) {
	at := *j.Attempt
	at.End = c.now
	c.sched.End(schedID(j.Number))
	closed := *j
	closed.Attempt = &at
	c.charge(&closed, c.ledger.End)
	at.Used = at.Used.Plus(c.held(charges(&closed)...))
	if !c.cfg.NoRecords {
		c.record(state.Record{Kind: state.KindAttempt, Job: j.Number, Seq: uint64(at.Attempt), Value: state.Encode(at)})
	}
	to, reason, text, retried := c.outcome(j, &at)
	if unsure(&at) && (to == job.Queued || to == job.Halted) {
		to, reason, text = job.OnHold, job.NodeFail, "it may have run on after the backup that was restored: release it if it shall start again"
	}
	j = c.change(j, endLine(to, text), func(j *state.Job) {
		j.Attempt, j.Ending, j.Retried = &at, nil, retried
		j.Used = j.Used.Plus(at.Used)
		j.State, j.Reason, j.Text = to, reason, text
		if j.Started > 0 {
			j.UsedRun += max(c.now-j.Started, 0)
		}
		if to == job.Halted {
			j.Next = c.jobs.next
		}
		if to == job.Queued || to == job.OnHold {
			j.Started = 0
			j.Attempt = &at
		}
	})
	if to == job.Halted {
		c.succeed(j)
	}
}

// outcome decides what becomes of a job whose attempt has ended.
func (c *step) outcome(j *state.Job, at *state.Attempt) (job.State, job.Reason, string, *state.Retried) {
	bad := at.Verdict()
	reason, text := reasonOf(bad), exitText(bad)
	switch e := j.Ending; {
	case allOK(at) && (e == nil || e.Then != job.Cancelled): // it reached its own end before an order did
		return job.Finished, job.None, "", j.Retried
	case e != nil && !e.Fault:
		return e.Then, e.Reason, e.Text, j.Retried
	case e != nil:
		reason, text = e.Reason, e.Text
	}
	v := c.retry(j, at, reason, text)
	if v.Again {
		return job.Queued, v.Reason, v.Text, &v.After
	}
	return job.Failed, v.Reason, v.Text, &v.After
}

func allOK(a *state.Attempt) bool {
	for _, r := range a.Ranks {
		if r.Exit == nil || !r.Exit.OK() {
			return false
		}
	}
	return true
}

// unsure says whether it is not known how an attempt went on: it ended after
// the backup that was restored.
func unsure(a *state.Attempt) bool {
	for _, r := range a.Ranks {
		if r.Unsure {
			return true
		}
	}
	return false
}
