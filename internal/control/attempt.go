package control

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
	"strings"
)

// endAttempt closes an attempt whose ranks have all ended: the resources are free,
// the ledger is charged in the same step, and the job ends or waits again.
func (c *step) endAttempt(j *state.Job) {
	at := *j.Attempt
	at.End = c.now
	c.queue.sched.End(schedID(j.Number))
	closed := *j
	closed.Attempt = &at
	c.charge(&closed, c.ledger.End)
	at.Used = at.Used.Plus(c.held(charges(&closed)...))
	if !c.cfg.NoRecords {
		c.out.record(state.Record{Kind: state.KindAttempt, Job: j.Number, Seq: uint64(at.Attempt), Value: state.Encode(at)})
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
	bad := at.Decisive()
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

// loseNode ends the ranks of a node that match as lost; why is the sentence about it.
func (c *step) loseNode(name, why string, match func(state.Rank) bool) {
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
			r.Exit = &node.Exit{Code: 255, Reason: job.NodeFail, EndedMS: int64(c.now), Message: why}
			c.advance(j, i, r)
			if j = c.job(num); !j.State.Active() {
				break
			}
		}
	}
}

// assign gives a job its resources and its nodes the order to run it.
func (c *step) assign(s sched.Start) {
	j := c.job(NumberOf(s.Job))
	if t := c.queue.promised[j.Number]; t > 0 {
		c.out.Missed = append(c.out.Missed, c.now-t)
		delete(c.queue.promised, j.Number)
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
	must(c.queue.sched.Start(c.running(j)))
	c.charge(j, c.ledger.Begin)
	c.ledger.CountStart(charges(j)[0], int64(waited))
	for _, a := range s.Ranks {
		c.arrive(a.Node, j.Number)
	}
}
