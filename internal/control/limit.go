package control

import (
	"fmt"

	"gbatch/internal/control/moments"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// A run time limit is kept by the node that runs the job. One that counts over
// the whole job, with waits and all tasks, is kept here.

// limits is when the time of jobs is over whose limits are kept here. One that has
// ended before is forgotten when that comes.
type limits struct{ moments.List }

func (l *limits) check(jobs *jobs) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("run time limits: %w", err)
	}
	for j := range jobs.all() {
		end := jobs.limitEnd(j)
		if end == 0 || j.Parent > 0 || j.State.Final() || j.Ending != nil {
			continue
		}
		if !l.Has(moments.Moment{At: end, Job: j.Number}) {
			return fmt.Errorf("nobody keeps the time limit of job %d", j.Number)
		}
	}
	return nil
}

// limitEnd is when the run time of a job, or of a task's whole array, is over;
// 0 if it is not counted so or has not begun.
func (t *jobs) limitEnd(j *state.Job) sched.Time { return j.LimitEnd(t.get(j.Parent)) }

// watchLimit begins to watch a job, or an array, that has run for the first time.
func (t *jobs) watchLimit(j *state.Job) {
	if end := t.limitEnd(j); end > 0 && j.Parent == 0 {
		t.limits.Add(moments.Moment{At: end, Job: j.Number})
	}
}

// noTimeLeft says whether another attempt would have no time to run, after one that has ended.
func (t *jobs) noTimeLeft(j *state.Job, ended sched.Time) bool {
	switch j.Request.LimitScope {
	case job.LimitAttempt:
		return false
	case job.LimitJob:
		end := t.limitEnd(j)
		return end > 0 && end <= t.out.Now
	}
	used := j.UsedRun
	if j.Started > 0 {
		used += max(ended-j.Started, 0)
	}
	return used >= j.Request.Limit
}

// limits ends jobs whose time is over, also while they only wait.
func (Tick) limits(s *step) {
	for m, ok := s.limits.Take(s.now); ok; m, ok = s.limits.Take(s.now) {
		j := s.jobs.get(m.Job)
		if j == nil || j.State.Final() || j.Ending != nil && j.Ending.Then != job.Queued {
			continue
		}
		how := state.Ending{Reason: job.MaxRuntime, Then: job.Failed}
		how.Signal, how.Grace = s.attempts.stopSignal(j)
		how.Text = fmt.Sprintf("its time limit of %s since it first started is over", job.Duration(j.Request.Limit/sched.Second))
		s.arrays.stop(j, how)
	}
}
