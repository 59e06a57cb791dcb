package control

import (
	"fmt"

	"gbatch/internal/control/depend"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/predict"
)

// tooMany refuses what would make the queue longer than it may be: the site's,
// and that of whoever submits. Each task counts, whether it is a job yet or not.
func (c *Controller) tooMany(probe sched.Job, more int) *state.Refusal {
	if c.jobs.waiting+more > c.cfg.MaxQueued {
		return &state.Refusal{Code: state.OverLimit, Message: fmt.Sprintf("the queue is full: %d jobs and tasks wait, and the site's limit is %d", c.jobs.waiting, c.cfg.MaxQueued),
			Hint: "submit again when some have run"}
	}
	if why, ok := c.queue.sched.MayQueue(probe, more, c.outside()); !ok {
		return &state.Refusal{Code: state.OverLimit, Message: why.Text, Hint: "submit again when some of them have run"}
	}
	return nil
}

// enqueue gives a queued job to the scheduler. Nobody else may have seen j yet.
// A job of the future, from before the clock was set back, counts as new.
func (c *step) enqueue(j *state.Job) {
	if j.Cron != nil {
		return // a template does not run
	}
	s := c.schedJob(j)
	s.Submitted = min(s.Submitted, c.now)
	p := c.job(j.Parent)
	if p != nil {
		s.NotBefore = max(s.NotBefore, depend.Since(p.Waits))
	}
	s.NotBefore = max(s.NotBefore, depend.Since(j.Waits))
	if j.Restart != nil {
		s.Interactive = false // nobody waits at a terminal for it any more
	}
	if j.Tries > 0 || j.Restart != nil || p != nil && p.First > 0 {
		s.MaxQueued, s.NotAfter = 0, 0 // it, or its array, has started in time once
	}
	if j.Retried != nil {
		s.NotBefore = max(s.NotBefore, j.Retried.Until)
	}
	must(c.queue.sched.Enqueue(s)) // checked when it was submitted
	j.Ref, _ = c.queue.sched.Ref(s.ID)
}

// schedJob is a job of the table as the scheduler sees it.
func (c *Controller) schedJob(j *state.Job) sched.Job {
	s := schedJob(schedID(j.Number), j.Owner, j.Request, j.Submitted)
	if j.Expected > 0 {
		s.Predicted = min(j.Expected, s.Limit)
	}
	return s
}

func schedJob(id sched.JobID, o *state.Owner, r *state.Request, submitted sched.Time) sched.Job {
	return sched.Job{
		ID: id, Project: o.Project, User: o.User, QOS: o.QOS, Shape: r.Shape,
		Submitted: submitted, Limit: r.Limit, MinRun: r.MinRun, Priority: r.Priority,
		NotBefore: r.NotBefore, NotAfter: r.NotAfter, MaxQueued: r.MaxQueued, Interactive: r.Interactive, Restartable: r.Restartable,
		Bucket: r.Bucket, BucketMax: r.BucketMax, Reservations: r.Reservations,
	}
}

// running is an active job as the scheduler sees it.
func (c *Controller) running(j *state.Job) sched.Running {
	r := sched.Running{
		Job:   c.schedJob(j),
		Start: j.Attempt.Start, End: j.Attempt.Start + j.LimitLeft(), Halting: j.Ending != nil,
	}
	for _, k := range j.Attempt.Ranks {
		r.Ranks = append(r.Ranks, k.Alloc)
	}
	return r
}

// schedID is the job's name to the scheduler, which puts it into its sentences:
// the number.
func schedID(n job.Number) sched.JobID { return sched.JobID(n) }

// NumberOf is the number of a job that the scheduler names.
func NumberOf(id sched.JobID) job.Number { return job.Number(id) }

// enqueueAgain gives a queued job to the scheduler anew, when it is another time
// at which it may start.
func (c *step) enqueueAgain(j *state.Job) {
	again := *j
	c.enqueue(&again)
	c.jobs.put(j, &again)
}

// queue is the scheduler, and what it and others said of when jobs start and
// end. It is due when something changed that a decision may depend on.
type queue struct {
	sched     *sched.State
	due       bool
	plan      *sched.Plan               // of the last round, nil before the first
	planned   sched.Time                // when that was
	promised  map[job.Number]sched.Time // first estimate of jobs that have had one and wait still
	predictor predict.Predictor
	windows   []sched.Window // advance reservations, in the order they were made
	limits    []watched      // jobs whose run time is kept here, the first to end first
}
