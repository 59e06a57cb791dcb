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

// limits is the jobs whose limits are kept here, the first to end first. One that
// has ended before its limit is forgotten when that comes.
type limits struct{ list []limit }

type limit struct {
	at  sched.Time
	job job.Number
}

func byTime(a, b limit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job)) }

func (l *limits) add(n limit) {
	at, _ := slices.BinarySearchFunc(l.list, n, byTime)
	l.list = slices.Insert(l.list, at, n)
}

// take is the next job whose time is over, false if there is none.
func (l *limits) take(now sched.Time) (job.Number, bool) {
	if len(l.list) == 0 || l.list[0].at > now {
		return 0, false
	}
	n := l.list[0].job
	l.list = l.list[1:]
	return n, true
}

func (l *limits) check(jobs *jobs) error {
	if !slices.IsSortedFunc(l.list, byTime) {
		return fmt.Errorf("run time limits are not in order: %v", l.list)
	}
	for j := range jobs.all() {
		end := jobs.limitEnd(j)
		if end == 0 || j.Parent > 0 || j.State.Final() || j.Ending != nil {
			continue
		}
		if _, ok := slices.BinarySearchFunc(l.list, limit{end, j.Number}, byTime); !ok {
			return fmt.Errorf("nobody keeps the time limit of job %d", j.Number)
		}
	}
	return nil
}

// limitEnd is when the run time of a job, or of a task's whole array, is over;
// 0 if it is not counted so or has not begun.
func (t *jobs) limitEnd(j *state.Job) sched.Time {
	first := j.First
	if p := t.get(j.Parent); j.Parent > 0 && p != nil {
		first = p.First
	}
	if j.Request.LimitScope != job.LimitJob || first == 0 {
		return 0
	}
	return first + j.Request.Limit
}

// watchLimit begins to watch a job, or an array, that has run for the first time.
func (t *jobs) watchLimit(j *state.Job) {
	if end := t.limitEnd(j); end > 0 && j.Parent == 0 {
		t.limits.add(limit{end, j.Number})
	}
}

// noTimeLeft says whether another attempt would have no time to run.
func (t *jobs) noTimeLeft(j *state.Job) bool {
	switch j.Request.LimitScope {
	case job.LimitAttempt:
		return false
	case job.LimitJob:
		end := t.limitEnd(j)
		return end > 0 && end <= t.out.now
	}
	used := j.UsedRun
	if j.Started > 0 {
		used += max(t.out.now-j.Started, 0)
	}
	return used >= j.Request.Limit
}

// limits ends jobs whose time is over, also while they only wait.
func (Tick) limits(s *step) {
	for n, ok := s.limits.take(s.now); ok; n, ok = s.limits.take(s.now) {
		j := s.jobs.get(n)
		if j == nil || j.State.Final() || j.Ending != nil && j.Ending.Then != job.Queued {
			continue
		}
		how := state.Ending{Reason: job.MaxRuntime, Then: job.Failed}
		how.Signal, how.Grace = s.attempts.stopSignal(j)
		how.Text = fmt.Sprintf("its time limit of %s since it first started is over", job.Duration(j.Request.Limit/sched.Second))
		s.arrays.stop(j, how)
	}
}
