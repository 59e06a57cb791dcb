package control

import (
	"encoding/json"
	"fmt"

	"gbatch/internal/job"
	"gbatch/sched"
)

// finish closes an attempt whose ranks have all ended: the resources are free,
// the ledger is charged in the same step, and the job ends or waits again.
func (c *Controller) finish(now sched.Time, j *Job) {
	at := *j.Attempt
	at.End = now
	c.sched.End(schedID(j.Number))
	closed := *j
	closed.Attempt = &at
	c.charge(&closed, c.ledger.End)
	at.Used = at.Used.Plus(c.held(charges(&closed)...))
	if !c.cfg.NoRecords {
		v, err := json.Marshal(at)
		must(err)
		c.record(Record{Kind: KindAttempt, Job: j.Number, Seq: uint64(at.Attempt), Value: v})
	}
	state, reason, text := c.outcome(j, &at)
	j = c.change(now, j, endLine(state, text), func(j *Job) {
		j.Attempt, j.Ending = &at, nil
		j.Used = j.Used.Plus(at.Used)
		j.State, j.Reason, j.Text = state, reason, text
		if j.Started > 0 {
			j.UsedRun += max(now-j.Started, 0)
		}
		if state == job.Halted {
			j.Next = c.next
		}
		if state == job.Queued {
			j.Started = 0
			j.Attempt = &at
		}
	})
	if state == job.Halted {
		c.succeed(now, j)
	}
}

// outcome decides what becomes of a job whose attempt has ended.
func (c *Controller) outcome(j *Job, at *Attempt) (job.State, job.Reason, string) {
	if e := j.Ending; e != nil {
		// A job that reached its own end before the order did keeps it.
		if e.Then != job.Cancelled && allOK(at) {
			return job.Finished, job.None, ""
		}
		return e.Then, e.Reason, e.Text
	}
	if allOK(at) {
		return job.Finished, job.None, ""
	}
	bad := at.Verdict()
	reason := reasonOf(bad)
	if reason.Class() == job.Infra && j.Request.Restartable {
		return job.Queued, reason, exitText(bad) + "; queued again"
	}
	return job.Failed, reason, exitText(bad)
}

func allOK(a *Attempt) bool {
	for _, r := range a.Ranks {
		if r.Exit == nil || !r.Exit.OK() {
			return false
		}
	}
	return true
}

// Verdict is the rank whose end speaks for the attempt: the first that ended
// badly, by time then rank, or rank 0 when all ended well.
func (a *Attempt) Verdict() Rank {
	bad := -1
	for i, r := range a.Ranks {
		if r.Exit != nil && r.Exit.OK() {
			continue
		}
		if bad < 0 || (r.Exit != nil && a.Ranks[bad].Exit != nil && r.Exit.EndedMS < a.Ranks[bad].Exit.EndedMS) {
			bad = i
		}
	}
	return a.Ranks[max(bad, 0)]
}

func endLine(s job.State, text string) string {
	if text == "" && s == job.Finished {
		return "finished"
	}
	return text
}

// loseNode ends the ranks of a node that match as lost.
func (c *Controller) loseNode(now sched.Time, name, why string, match func(Rank) bool) {
	n := c.node(name)
	if n == nil {
		return
	}
	for _, num := range n.Jobs { // the slice is never changed in place
		j := c.job(num)
		for i := range j.Attempt.Ranks {
			r := j.Attempt.Ranks[i]
			if r.Alloc.Node != name || r.Phase == job.PhaseEnded || !match(r) {
				continue
			}
			r.Phase = job.PhaseEnded
			r.Exit = &job.Exit{Code: 255, Reason: job.NodeFail, EndedMS: int64(now), Message: fmt.Sprintf("node %s failed: %s", name, why)}
			c.advance(now, j, i, r)
			if j = c.job(num); !j.State.Active() {
				break
			}
		}
	}
}
