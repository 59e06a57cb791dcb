package array

import (
	"cmp"
	"fmt"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// TakeIn puts into an array's tasks, a clone, what children have come to.
func (a *Array) TakeIn(t *state.Tasks, jobs *state.Table) {
	for _, n := range a.Ended {
		j := jobs.Get(n)
		at, _ := t.Position(j.Index)
		s := stateOf(j.State)
		t.Set(at, s)
		if s == state.TaskFailed {
			t.NoteFailure(fmt.Sprintf("%d: %s", j.Index, cmp.Or(j.Text, string(j.Reason))))
		}
	}
	t.Failures += a.Failures
	t.Image = a.Image
	a.Ended, a.Begun, a.Failures = nil, 0, 0
}

// Cut is what ends an array before all of its tasks are over; nil: nothing.
func (a *Array) Cut(p *state.Job) *state.Ending {
	t := p.Tasks
	switch failed := t.Counts[state.TaskFailed]; {
	case a.Whole != nil:
		return a.Whole
	case failed > mayFail(t):
		return &state.Ending{Then: job.Failed, Reason: job.FailedIndexes, Text: failures(t)}
	case early(t) && t.Enough >= needs(t):
		return &state.Ending{Then: job.Finished, Text: fmt.Sprintf("%d of its tasks have succeeded, which is enough", t.Enough)}
	}
	return nil
}

// Ending is how an array ends whose tasks are all over.
func Ending(p *state.Job) state.Ending {
	t := p.Tasks
	switch {
	case p.Ending != nil:
		how := *p.Ending
		if how.Reason == job.FailedIndexes {
			how.Text = failures(t) // more may have failed meanwhile
		}
		return how
	case t.Counts[state.TaskFailed] > 0:
		return state.Ending{Then: job.Failed, Reason: job.FailedIndexes, Text: failures(t)}
	case t.Counts[state.TaskMissed] > 0:
		return state.Ending{Then: job.Cancelled, Reason: job.DependencyFailed, Text: fmt.Sprintf(
			"tasks that did not run: %s; what each waited for has not finished well", t.In(state.TaskMissed).Short())}
	case t.Counts[state.TaskCancelled] > 0:
		return state.Ending{Then: job.Cancelled, Reason: job.ByUser, Text: fmt.Sprintf("tasks %s were cancelled", t.In(state.TaskCancelled).Short())}
	}
	return state.Ending{Then: job.Finished}
}

// MayFill says whether tasks of an array may become jobs.
func MayFill(p *state.Job) bool {
	return p.State == job.Queued && p.Ending == nil && !p.Waits.Unmet() && p.Tasks.Counts[state.TaskPending] > 0
}

// stateOf is what a child's end is to its array.
func stateOf(s job.State) state.TaskState {
	switch s {
	case job.Finished:
		return state.TaskSucceeded
	case job.Failed:
		return state.TaskFailed
	}
	return state.TaskCancelled
}

// EndOf is the inverse of StateOf.
func EndOf(s state.TaskState) job.State {
	switch s {
	case state.TaskSucceeded:
		return job.Finished
	case state.TaskFailed:
		return job.Failed
	}
	return job.Cancelled
}

// needs is how many tasks of Enough must succeed for the job to succeed.
func needs(t *state.Tasks) int {
	if t.EnoughCount > 0 {
		return t.EnoughCount
	}
	return t.Array.Enough.Len()
}

// early says that the job may succeed before all of its tasks are over.
func early(t *state.Tasks) bool { return t.EnoughCount > 0 || t.EnoughIndexes != "" }

// mayFail is how many tasks may fail without ending the others.
func mayFail(t *state.Tasks) int {
	switch {
	case t.FailFast:
		return 0
	case t.MaxFailed != nil:
		return *t.MaxFailed
	}
	return job.MaxTasks
}

// failures puts into words which tasks failed and why the first of them did.
func failures(t *state.Tasks) string {
	failed := t.In(state.TaskFailed)
	text := fmt.Sprintf("%d of %d tasks failed: %s", failed.Len(), t.Len(), failed.Short())
	if len(t.First) == 0 {
		return text
	}
	return text + "; " + strings.Join(t.First, "; ")
}
