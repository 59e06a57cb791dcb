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
func (q *queue) predicts() bool { return q.cfg.Policy.Estimates == sched.ByPredicted }

// expect is the run time to expect of a new job; 0 if nothing is known.
func (q *queue) expect(j *state.Job) sched.Time {
	if !q.predicts() {
		return 0
	}
	return q.predictor.Predict(waitingJob(j))
}

// observe learns from an attempt that ended by itself: finished or failed by its
// own doing. One that was cancelled or lost says nothing about the next.
func (q *queue) observe(j *state.Job) {
	if !q.predicts() && q.cfg.Policy.BoostBacklog == 0 || j.Started == 0 || j.Ended == 0 {
		return
	}
	own := j.State == job.Finished || j.State == job.Failed && j.Reason.Class() != job.Infra
	if own {
		q.predictor.Observe(waitingJob(j), max(j.Ended-j.Started, 1))
		q.sched.SetLimitUse(q.predictor.LimitUse())
	}
}
