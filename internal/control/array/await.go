package array

import (
	"container/heap"
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Tasks of an array may wait for those of other arrays, each for the ones of
// its own index (aftercorr). Nothing of that is stored but the arrays that are
// awaited: whether a task may become a job is in the letters of these. When a
// task is over, those that wait for it are looked at, and no others; a task that
// may start is put into its array's ready, from which the window is filled. An
// array that is over is awaited no more, for by then each task that waited for
// one of it is missed or need not wait.

// MaxAwaited bounds the arrays that one array's tasks wait for, and the arrays
// whose tasks wait for those of one.
const MaxAwaited = 100

// chance says whether a task may start by what became of those of its index in
// other arrays.
type chance int

const (
	undecided chance = iota // some of them are not over
	ready                   // it may
	hopeless                // one has not finished well
)

// chanceOf is that of the task of an index.
func chanceOf(index int, awaited []*state.Job) chance {
	c := ready
	for _, q := range awaited {
		switch s, _ := q.Tasks.State(index); s {
		case state.TaskSucceeded:
		case state.TaskPending, state.TaskLive:
			c = undecided
		default:
			return hopeless
		}
	}
	return c
}

// MissNew puts into new tasks what can be said of them at once: those that wait
// for a task that has not finished well can never start.
func MissNew(t *state.Tasks, awaited []*state.Job) {
	for at := range t.Len() {
		if chanceOf(t.Index(at), awaited) == hopeless {
			t.Set(at, state.TaskMissed)
		}
	}
}

// awaitTasks finds out which tasks of an array may start, and that it is to hear
// of the arrays that it waits for.
func (s *Set) awaitTasks(p *state.Job, jobs *state.Table) {
	a, awaited := s.arrays[p.Number], awaitedBy(p, jobs)
	for _, q := range awaited {
		s.waiters[q.Number] = append(s.waiters[q.Number], p.Number)
	}
	for at := 0; len(awaited) > 0 && at < p.Tasks.Len(); at++ {
		if chanceOf(p.Tasks.Index(at), awaited) == ready && p.Tasks.At(at) == state.TaskPending {
			a.ready = append(a.ready, at) // ascending: a heap
		}
	}
}

func awaitedBy(p *state.Job, jobs *state.Table) []*state.Job {
	var out []*state.Job
	for _, n := range p.Waits.Arrays() {
		out = append(out, jobs.Get(n))
	}
	return out
}

// TakeInAwaited takes in what became of tasks that an array's tasks wait for: of
// its tasks into t, a clone, and of the arrays that are left to wait for.
func (a *Array) TakeInAwaited(p *state.Job, t *state.Tasks, jobs *state.Table) (left []job.Number) {
	indexes := a.awaited
	a.awaited = nil
	awaited := awaitedBy(p, jobs)
	for _, i := range indexes {
		at, ok := t.Position(i)
		if !ok || t.At(at) != state.TaskPending {
			continue
		}
		switch chanceOf(i, awaited) {
		case ready:
			heap.Push(&a.ready, at)
		case hopeless:
			t.Set(at, state.TaskMissed)
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Waits.Tasks), func(n job.Number) bool { return jobs.Get(n).State.Final() })
}

// Refuse says why the tasks of a new job cannot wait for those of another one by
// one; nil if they can.
func (s *Set) Refuse(tasks *state.Tasks, q *state.Job, id string, any bool) *state.Refusal {
	refuse := func(message, hint string) *state.Refusal {
		return &state.Refusal{Code: state.Unsatisfiable, Message: message, Hint: hint}
	}
	switch {
	case tasks == nil:
		return refuse(fmt.Sprintf("job %s has tasks and this one has none, so that they cannot wait for each other one by one", id), "use afterok, which waits for all of them")
	case q.Tasks == nil:
		return refuse(fmt.Sprintf("job %s has no tasks, for which those of this one could wait one by one", id), "use afterok, for which all of them wait")
	case any:
		return refuse("tasks that wait one by one wait for all that is named", "separate the dependencies by , instead of ?, or remove dependOnAny")
	case len(s.waiters[q.Number]) >= MaxAwaited:
		return refuse(fmt.Sprintf("%d arrays wait already for the tasks of job %s one by one", MaxAwaited, id), "use afterok, which waits for all of them")
	}
	if extra := tasks.All.Minus(q.Tasks.All); len(extra) > 0 {
		return refuse(fmt.Sprintf("tasks %s would wait for tasks that job %s does not have: its tasks are %s", extra.Short(), id, q.Tasks.All.Short()),
			"leave them out of gbatch.tasks")
	}
	return nil
}
