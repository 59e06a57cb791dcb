package depend

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// MaxNeeds bounds the jobs that one job waits for.
const MaxNeeds = 10_000

// never stands for a time that is not known yet.
const never = sched.Never / 4

// Awaits are the conditions whose jobs may change something for j by their
// beginning or end.
func Awaits(j *state.Job) []state.Need {
	if j.Waits == nil || !j.State.Pending() || j.Tries > 0 {
		return nil
	}
	return j.Waits.Needs
}

// Outcome is what became of a condition.
type Outcome int

// The outcomes.
const (
	Undecided Outcome = iota
	Met               // from a moment on
	Impossible
)

// Judge looks at a condition on a job, or a task that is none, as it is. The
// moment is when the condition came true, or will.
func Judge(n state.Need, now sched.Time, j *state.Job) (Outcome, sched.Time) {
	ended := j.State.Final()
	switch n.Type {
	case job.After:
		switch {
		case j.Started > 0:
			return Met, j.Started + n.Delay
		case ended || j.UsedRun > 0:
			return Met, now + n.Delay
		}
	case job.AfterOK, job.AfterCorr:
		if j.State == job.Finished {
			return Met, now
		}
		if ended {
			return Impossible, 0
		}
	case job.AfterNotOK:
		if j.State == job.Finished {
			return Impossible, 0
		}
		if ended {
			return Met, now
		}
	case job.AfterAny, job.Singleton:
		if ended {
			return Met, now
		}
	}
	return Undecided, 0
}

// Update takes in that a condition's job is as j now is. It reports whether
// something changed; why is set when the whole can no longer come true.
func Update(w state.Waits, now sched.Time, j *state.Job, next func(state.Need) job.Number) (out state.Waits, changed bool, why string) {
	out = w
	out.Needs = nil
	for _, n := range w.Needs {
		if n.Job != j.Number {
			out.Needs = append(out.Needs, n)
			continue
		}
		if to := next(n); to != 0 {
			n.Job, n.Task, changed = to, nil, true
			out.Needs = append(out.Needs, n)
			continue
		}
		about := j
		if n.Task != nil {
			about, _ = j.PendingTask(*n.Task)
		}
		switch o, at := Judge(n, now, about); o {
		case Undecided:
			out.Needs = append(out.Needs, n)
		case Met:
			changed = true
			switch {
			case !out.Any:
				out.Since = max(out.Since, at)
			case !out.Met || at < out.Since:
				out.Since = at
			}
			out.Met = out.Met || out.Any
		case Impossible:
			changed, why = true, n.Missed(about)
		}
	}
	if out.Any && (out.Met || len(out.Needs) > 0) {
		why = "" // another one is enough
	}
	out.Met = out.Met || why == "" && len(out.Needs) == 0
	return out, changed, why
}

// Since is the earliest start of a job by what it waits for; 0: at once.
func Since(w *state.Waits) sched.Time {
	switch {
	case w == nil:
		return 0
	case !w.Met:
		return never
	}
	return w.Since
}
