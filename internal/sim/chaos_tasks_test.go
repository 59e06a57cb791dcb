package sim

import (
	"fmt"

	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/internal/state"
)

// tasks makes a random job's array: short ones that end, and long ones whose
// window is never all of it.
func (x *chaos) tasks() *job.Tasks {
	t := &job.Tasks{Indexes: indexes.First(1 + x.rng.IntN(12))}
	if x.oneIn(5) {
		t.Indexes = fmt.Sprintf("1-3,10-%d", 400+x.rng.IntN(400))
	}
	if x.oneIn(2) {
		t.Parallelism = 1 + x.rng.IntN(4)
	}
	most := x.rng.IntN(3)
	switch x.rng.IntN(4) {
	case 0:
		t.FailFast = true
	case 1:
		t.MaxFailed = &most
	case 2:
		t.EnoughCount = 1
	}
	return t
}

// retries lets a random job be tried again.
func (x *chaos) retries(req *state.Request) {
	most := x.rng.IntN(4)
	req.Retry = []*job.Retry{
		{Limit: 2}, {Limit: 5, JobLimit: &most}, {Window: 600, Backoff: 5}, {Limit: 3, On: []string{job.OnInterruption}},
		{Limit: 1, Rules: []job.RetryRule{{Reasons: []job.Reason{job.OOM}, Action: job.FailJob}, {ExitCodes: []int{1}, Action: job.Ignore}}},
	}[x.rng.IntN(5)]
	req.LimitScope = []string{job.LimitTotal, job.LimitAttempt, job.LimitJob}[x.rng.IntN(3)]
}

// afterTasks lets the tasks of a random array wait for those of another.
func (x *chaos) afterTasks(ev *control.Submit) {
	g := ev.Spec.Gbatch
	if g.Tasks == nil || len(x.arrays) == 0 || !x.oneIn(2) {
		return
	}
	q := x.arrays[x.rng.IntN(len(x.arrays))]
	g.Tasks.Indexes, g.DependOnAny = x.asked[q].Tasks.Indexes, false
	if g.Tasks.EnoughCount > 0 {
		g.Tasks.EnoughCount = 1
	}
	g.Dependencies = append(g.Dependencies, job.Dependency{Type: job.AfterCorr, Jobs: []string{fmt.Sprint(q)}})
}

// taskState is what became of a task of an array, of the past too.
func (x *chaos) taskState(array string, index int) state.TaskState {
	n, _ := job.ParseNumber(array)
	s, _ := x.known(n).Tasks.State(index)
	return s
}

// taskCameTrue is a condition on a task. Its end is in its array's state.
func taskCameTrue(s state.TaskState, condition string) bool {
	switch condition {
	case job.AfterOK:
		return s == state.TaskSucceeded
	case job.AfterNotOK:
		return s == state.TaskFailed || s == state.TaskMissed || s == state.TaskCancelled
	}
	return s != state.TaskPending && s != state.TaskLive
}

// find is a job of history by what people type; nil: there is none.
func (x *chaos) find(id string) *state.Job {
	if n, ok := job.ParseNumber(id); ok {
		return x.known(n)
	}
	n, set, _ := state.ParseTask(id)
	p := x.known(n)
	if p == nil || p.Tasks == nil {
		return nil
	}
	uuid := p.TaskUUID(set[0].First)
	for _, r := range x.stored { // one fits at most
		if r.Kind == state.KindUUID && r.Name == string(uuid[:]) {
			return x.known(r.Job)
		}
	}
	j, _ := p.PendingTask(set[0].First)
	return j
}

// replaceOrRepeat makes a random job one that takes the place of others, or a
// template.
func (x *chaos) replaceOrRepeat(ev *control.Submit) {
	g := ev.Spec.Gbatch
	switch {
	case x.oneIn(12):
		g.Replace, g.DependOnAny = true, false
	case x.oneIn(20):
		g.Cron, g.Dependencies, g.DependOnAny = []string{"*/7 * * * *"}, nil, false
	}
}
