package control

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// What steers a job on its way, besides holding and ending it.

// Signals are those that can be sent to a job that goes on.
var Signals = []string{"HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "CONT", "WINCH"}

// maxSent bounds the signals that wait for a job's nodes to deliver them.
const maxSent = 16

// reason is who ended a job by this order.
func (e Act) reason() job.Reason {
	if e.Admin {
		return job.ByAdmin
	}
	return job.ByUser
}

// stopWith is how a job is asked to end.
func (c *Controller) stopWith(j *state.Job) state.Ending {
	e := state.Ending{Signal: "TERM", Grace: c.cfg.Grace}
	if j.Request.StopSignal != "" {
		e.Signal = j.Request.StopSignal
	}
	if g := j.Request.StopGrace; g > 0 {
		e.Grace = g
	}
	return e
}

// requeue ends a running attempt; the job waits again.
func (c *Controller) requeue(now sched.Time, j *state.Job, e Act) Outcome {
	switch {
	case j.State.Final():
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: a job that has ended does not run again", j.Number, j.State),
			Hint: fmt.Sprintf("submit it as a new one; gqueue show --json %d has its document", j.Number)}}
	case j.State.Pending():
		return Outcome{Message: "waits already"}
	case j.Ending != nil:
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is being ended", j.Number)}}
	}
	how := c.stopWith(j)
	how.Reason, how.Text, how.Then = e.reason(), "requeued by "+e.By, job.Queued
	c.end(now, j, how)
	return Outcome{Message: "is being ended and will wait again"}
}

// reprioritize changes what is added to a waiting job's priority. Users may only
// lower it.
func (c *Controller) reprioritize(now sched.Time, j *state.Job, e Act) Outcome {
	was := j.Request.Priority
	req := *j.Request
	req.Priority = e.Priority
	switch {
	case !j.State.Pending():
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a waiting job has a priority", j.Number, stateText(j))}}
	case max(e.Priority, -e.Priority) > job.MaxPriority:
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("priority %d: use -%d to %d", e.Priority, job.MaxPriority, job.MaxPriority)}}
	case e.Priority == was:
		return Outcome{Message: fmt.Sprintf("has priority %d already", was)}
	case e.Priority > was && !e.Operator:
		return Outcome{Refusal: &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("job %d has priority %d: only an operator may raise it", j.Number, was),
			Hint: "use a lower number"}}
	}
	text := fmt.Sprintf("priority %d by %s, was %d", e.Priority, e.By, was)
	j = c.change(now, j, text, func(j *state.Job) { j.Request = c.intern.request(req) })
	if j.State == job.Queued {
		c.requeueEligible(now, j)
	}
	for _, t := range c.children(j.Number) { // those that are made later ask what the array asks
		if t.State.Pending() {
			c.reprioritize(now, t, e)
		}
	}
	return Outcome{Message: fmt.Sprintf("has priority %d, was %d", e.Priority, was)}
}

// signal sends a signal to a job's processes, which go on.
func (c *Controller) signal(now sched.Time, j *state.Job, e Act) Outcome {
	switch {
	case !slices.Contains(Signals, e.Signal):
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("signal %q cannot be sent to a job", e.Signal),
			Hint: "signals: " + strings.Join(Signals, ", ") + "; gcancel --pause makes a job stand still, and gcancel ends it"}}
	case j.State != job.Running || j.Ending != nil:
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a job that runs can be sent a signal", j.Number, stateText(j))}}
	case len(j.Attempt.Sent) >= maxSent:
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("%d signals wait already for job %d's nodes to deliver them", maxSent, j.Number),
			Hint: "try again later"}}
	}
	at := *j.Attempt
	at.SentSeq++
	at.Sent = append(slices.Clone(at.Sent), state.Sent{Seq: at.SentSeq, Name: e.Signal, By: e.By})
	c.wakeNodesOf(c.change(now, j, fmt.Sprintf("%s sends signal %s", e.By, e.Signal), func(j *state.Job) { j.Attempt = &at }))
	return Outcome{Message: fmt.Sprintf("is sent %s", e.Signal)}
}

// acknowledged takes in what a node says of signals that it has sent to a rank.
func (c *Controller) acknowledged(now sched.Time, j *state.Job, i int, st node.RankStatus) {
	r := j.Attempt.Ranks[i]
	if st.Signalled <= r.Signalled && (!st.Stopping || r.Stopping) {
		return
	}
	at := withRank(j.Attempt, i, func(r *state.Rank) {
		r.Signalled = max(r.Signalled, min(st.Signalled, j.Attempt.SentSeq))
		r.Stopping = r.Stopping || st.Stopping
	})
	line := ""
	for _, s := range j.Attempt.Sent {
		if s.Seq > r.Signalled && s.Seq <= st.Signalled {
			line = joinText(line, fmt.Sprintf("%s was sent to rank %d on %s", s.Name, i, r.Alloc.Node))
		}
	}
	at.Sent = slices.DeleteFunc(slices.Clone(at.Sent), func(s state.Sent) bool {
		return !slices.ContainsFunc(at.Ranks, func(r state.Rank) bool { return r.Phase != node.PhaseEnded && r.Signalled < s.Seq })
	})
	j = c.change(now, j, line, func(j *state.Job) { j.Attempt = at })
	if j.State == job.MustHalt {
		c.haltSent(now, j)
	}
}
