package control

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// finish closes an attempt whose ranks have all ended: the resources are free,
// the ledger is charged in the same step, and the job ends or waits again.
func (c *Controller) finish(now sched.Time, j *state.Job) {
	at := *j.Attempt
	at.End = now
	c.sched.End(schedID(j.Number))
	closed := *j
	closed.Attempt = &at
	c.charge(&closed, c.ledger.End)
	at.Used = at.Used.Plus(c.held(charges(&closed)...))
	if !c.cfg.NoRecords {
		c.record(state.Record{Kind: state.KindAttempt, Job: j.Number, Seq: uint64(at.Attempt), Value: state.Encode(at)})
	}
	to, reason, text, retried := c.outcome(now, j, &at)
	if unsure(&at) && (to == job.Queued || to == job.Halted) {
		to, reason, text = job.OnHold, job.NodeFail, "it may have run on after the backup that was restored: release it if it shall start again"
	}
	j = c.change(now, j, endLine(to, text), func(j *state.Job) {
		j.Attempt, j.Ending, j.Retried = &at, nil, retried
		j.Used = j.Used.Plus(at.Used)
		j.State, j.Reason, j.Text = to, reason, text
		if j.Started > 0 {
			j.UsedRun += max(now-j.Started, 0)
		}
		if to == job.Halted {
			j.Next = c.next
		}
		if to == job.Queued || to == job.OnHold {
			j.Started = 0
			j.Attempt = &at
		}
	})
	if to == job.Halted {
		c.succeed(now, j)
	}
}

// outcome decides what becomes of a job whose attempt has ended.
func (c *Controller) outcome(now sched.Time, j *state.Job, at *state.Attempt) (job.State, job.Reason, string, *state.Retried) {
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
	v := c.retry(now, j, at, reason, text)
	if v.Again {
		return job.Queued, v.Reason, v.Text, &v.After
	}
	return job.Failed, v.Reason, v.Text, &v.After
}

// fail ends a job that waits.
func (c *Controller) fail(now sched.Time, j *state.Job, reason job.Reason, text string) *state.Job {
	if j.Tasks != nil {
		c.endArray(now, j, state.Ending{Then: job.Failed, Reason: reason, Text: text})
		c.settleArrays(now)
		return c.job(j.Number)
	}
	return c.change(now, j, text, func(j *state.Job) { j.State, j.Reason, j.Text = job.Failed, reason, text })
}

func endLine(s job.State, text string) string {
	if text == "" && s == job.Finished {
		return "finished"
	}
	return text
}

// loseNode ends the ranks of a node that match as lost; why is the sentence about it.
func (c *Controller) loseNode(now sched.Time, name, why string, match func(state.Rank) bool) {
	n := c.node(name)
	if n == nil {
		return
	}
	for _, num := range n.Jobs { // the slice is never changed in place
		j := c.job(num)
		for i := range j.Attempt.Ranks {
			r := j.Attempt.Ranks[i]
			if r.Alloc.Node != name || r.Phase == node.PhaseEnded || !match(r) {
				continue
			}
			r.Phase = node.PhaseEnded
			r.Exit = &node.Exit{Code: 255, Reason: job.NodeFail, EndedMS: int64(now), Message: why}
			c.advance(now, j, i, r)
			if j = c.job(num); !j.State.Active() {
				break
			}
		}
	}
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
