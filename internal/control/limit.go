package control

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// A run time limit is kept by the node that runs the job. One that counts over
// the whole job, with waits and all tasks, is kept here.

// limitEnd is when the run time of a job, or of a task's whole array, is over;
// 0 if it is not counted so or has not begun.
func (c *Controller) limitEnd(j *state.Job) sched.Time {
	first := j.First
	if p := c.job(j.Parent); j.Parent > 0 && p != nil {
		first = p.First
	}
	if j.Request.LimitScope != job.LimitJob || first == 0 {
		return 0
	}
	return first + j.Request.Limit
}

// noTimeLeft says whether another attempt would have no time to run.
func (c *step) noTimeLeft(j *state.Job) bool {
	switch j.Request.LimitScope {
	case job.LimitAttempt:
		return false
	case job.LimitJob:
		end := c.limitEnd(j)
		return end > 0 && end <= c.now
	}
	used := j.UsedRun
	if j.Started > 0 {
		used += max(c.now-j.Started, 0)
	}
	return used >= j.Request.Limit
}

// watched is a job whose limit the controller keeps.
type watched struct {
	at  sched.Time
	job job.Number
}

// watchLimit begins to watch a job, or an array, that has run for the first time.
func (c *Controller) watchLimit(j *state.Job) {
	if end := c.limitEnd(j); end > 0 && j.Parent == 0 {
		w := watched{end, j.Number}
		at, _ := slices.BinarySearchFunc(c.queue.limits, w, func(a, b watched) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job)) })
		c.queue.limits = slices.Insert(c.queue.limits, at, w)
	}
}

// tickLimits ends jobs whose time is over, also while they only wait.
func (e Tick) limits(c *step) {
	for len(c.queue.limits) > 0 && c.queue.limits[0].at <= c.now {
		j := c.job(c.queue.limits[0].job)
		c.queue.limits = c.queue.limits[1:]
		if j == nil || j.State.Final() {
			continue
		}
		text := fmt.Sprintf("its time limit of %s since it first started is over", job.Duration(j.Request.Limit/sched.Second))
		how := c.stopWith(j)
		how.Reason, how.Text, how.Then = job.MaxRuntime, text, job.Failed
		switch {
		case j.Ending != nil && j.Ending.Then != job.Queued:
		case j.Tasks != nil:
			c.endArray(j, how)
		case j.State.Pending():
			c.change(j, text, func(j *state.Job) { j.State, j.Reason, j.Text = job.Failed, job.MaxRuntime, text })
		default:
			c.end(j, how)
		}
	}
}
