package control

import (
	"fmt"

	"gbatch/internal/control/moments"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// warnings is when parts of the time limits of running jobs are used that somebody wants
// to hear of, of each job the next one. One that has become another time, as the limit
// has, is looked at again when it comes.
type warnings struct{ moments.List }

func (w *warnings) check(jobs *jobs) error {
	if err := w.Check(); err != nil {
		return fmt.Errorf("warnings of time limits: %w", err)
	}
	for j := range jobs.all() {
		if at, _ := jobs.warning(j); at > 0 && !w.Has(moments.Moment{At: at, Job: j.Number}) {
			return fmt.Errorf("nobody waits to warn of the time limit of job %d", j.Number)
		}
	}
	return nil
}

// watchWarning waits for the next part of a job's limit that somebody wants to hear of.
func (t *jobs) watchWarning(j *state.Job) {
	if at, _ := t.warning(j); at > 0 {
		t.warnings.Add(moments.Moment{At: at, Job: j.Number})
	}
}

// warning is the least of the parts that somebody wants to hear of and was not told of, in
// percent, and when it is used; 0 if there is none. Of an array people are told as of a
// whole, which has a limit only where that is the whole job's. That goes on in waits.
func (t *jobs) warning(j *state.Job) (at sched.Time, percent int) {
	if len(j.Request.Warn) == 0 || j.State.Final() || j.Ending != nil || j.Parent > 0 {
		return 0, 0
	}
	limit, end := j.Request.Limit, t.limitEnd(j)
	if j.Request.LimitScope != job.LimitJob && j.State == job.Running && j.Tasks == nil {
		limit, end = j.LimitNow(), j.Started+j.LimitLeft()
	}
	if end == 0 {
		return 0, 0
	}
	for _, p := range j.Request.Warn {
		if p > int(j.Warned) {
			return max(end-limit*sched.Time(100-p)/100, 1), p
		}
	}
	return 0, 0
}

// warnings tells how much of their time limits jobs have used. What was used while
// nobody was there to tell, or by a shorter limit, is told at once, the most of it alone.
func (Tick) warnings(s *step) {
	for m, ok := s.warnings.Take(s.now); ok; m, ok = s.warnings.Take(s.now) {
		j := s.jobs.get(m.Job)
		if j == nil {
			continue
		}
		reached := *j
		at, percent := s.jobs.warning(&reached)
		for ; at > 0 && at <= s.now; at, percent = s.jobs.warning(&reached) {
			reached.Warned = int8(percent)
		}
		if reached.Warned == j.Warned {
			s.jobs.watchWarning(j)
			continue
		}
		line := fmt.Sprintf("%d %% of its time limit of %s is used", reached.Warned, job.Duration(j.LimitNow()/sched.Second))
		j = s.jobs.change(j, line, func(j *state.Job) { j.Warned = reached.Warned })
		s.out.Warn(j, int(j.Warned))
	}
}
