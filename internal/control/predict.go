package control

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// The run time of a job is predicted when it is submitted, and kept in its
// record, so that a plan is the same after a restart. What the predictor has
// learnt is rebuilt from the ended jobs that are still in the table, which is
// all that it would remember of most users anyway.

// predicts says whether the site wants predictions.
func (c *Controller) predicts() bool { return c.cfg.Policy.Estimates == sched.ByPredicted }

// expect is the run time to expect of a new job; 0 if nothing is known.
func (c *Controller) expect(j *state.Job) sched.Time {
	if !c.predicts() {
		return 0
	}
	return c.queue.predictor.Predict(c.schedJob(j))
}

// observe learns from an attempt that ended by itself: finished or failed by its
// own doing. One that was cancelled or lost says nothing about the next.
func (c *Controller) observe(j *state.Job) {
	if !c.predicts() && c.cfg.Policy.BoostBacklog == 0 || j.Started == 0 || j.Ended == 0 {
		return
	}
	own := j.State == job.Finished || j.State == job.Failed && j.Reason.Class() != job.Infra
	if own {
		c.queue.predictor.Observe(c.schedJob(j), max(j.Ended-j.Started, 1))
		c.queue.sched.SetLimitUse(c.queue.predictor.LimitUse())
	}
}
