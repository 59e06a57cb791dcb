package array

import (
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Check verifies that each task is in exactly one state, that the counts say so,
// and that a task that is live is exactly one job.
func (s *Set) Check(jobs *state.Table) error {
	over := map[job.Number]map[int]*state.Job{}
	for j := range jobs.All() {
		if j.Parent == 0 {
			continue
		}
		if a := s.arrays[j.Parent]; !j.State.Final() && (a == nil || a.live[j.Index] != j.Number) {
			return fmt.Errorf("job %d is task %s, which has another job or is over", j.Number, j.ID())
		}
		if j.State.Final() {
			if over[j.Parent] == nil {
				over[j.Parent] = map[int]*state.Job{}
			}
			if twin := over[j.Parent][j.Index]; twin != nil {
				return fmt.Errorf("jobs %d and %d are both task %s", twin.Number, j.Number, j.ID())
			}
			over[j.Parent][j.Index] = j
		}
	}
	if len(s.changed) > 0 {
		return fmt.Errorf("arrays %v were not looked at", s.changed)
	}
	for p := range jobs.All() {
		if p.Tasks == nil {
			continue
		}
		if err := s.checkArray(p, over[p.Number], jobs); err != nil {
			return fmt.Errorf("array %d: %w", p.Number, err)
		}
	}
	return s.checkAwaited(jobs)
}

func (s *Set) checkArray(p *state.Job, over map[int]*state.Job, jobs *state.Table) error {
	t, a := p.Tasks, s.arrays[p.Number]
	if (a == nil) != p.State.Final() || p.Attempt != nil {
		return fmt.Errorf("it is %s, is kept %t and has an attempt %t", p.State, a != nil, p.Attempt != nil)
	}
	counts, enough, sum := map[state.TaskState]int{}, 0, 0
	for at := range t.Len() {
		st, i := t.At(at), t.Index(at)
		counts[st]++
		if st == state.TaskSucceeded && t.Array.Enough.Has(i) {
			enough++
		}
		if a != nil && (st == state.TaskLive) != (a.live[i] != 0) {
			return fmt.Errorf("task %d is %q and its job is %d", i, st, a.live[i])
		}
		if j := over[i]; j != nil && st != stateOf(j.State) {
			return fmt.Errorf("task %d is %q and its job %d %s", i, st, j.Number, j.State)
		}
	}
	for st, n := range t.Counts {
		if counts[st] != n {
			return fmt.Errorf("%d tasks are %q, and it counts %d", counts[st], st, n)
		}
		sum += n
	}
	if sum != t.Len() || enough != t.Enough {
		return fmt.Errorf("it counts %d of %d tasks, and %d of %d as enough", sum, t.Len(), t.Enough, enough)
	}
	if p.State.Final() && counts[state.TaskPending]+counts[state.TaskLive] > 0 {
		return fmt.Errorf("it is %s with %d tasks that are not over", p.State, counts[state.TaskPending]+counts[state.TaskLive])
	}
	if a != nil {
		return a.check(p, jobs)
	}
	return nil
}

func (a *Array) check(p *state.Job, jobs *state.Table) error {
	var now Array
	for _, n := range a.Children() {
		now.count(jobs.Get(n), +1)
	}
	switch {
	case now.waiting != a.waiting || now.delayed != a.delayed:
		return fmt.Errorf("%d tasks wait and %d for another try, and it counts %d and %d", now.waiting, now.delayed, a.waiting, a.delayed)
	case p.Tasks.Parallelism > 0 && len(a.live) > p.Tasks.Parallelism:
		return fmt.Errorf("%d of its tasks are live, at most %d may be", len(a.live), p.Tasks.Parallelism)
	case len(a.live) == 0 && MayFill(p) && (len(p.Waits.Arrays()) == 0 || len(a.ready) > 0):
		return fmt.Errorf("nothing of it is live, and %d tasks are left", p.Tasks.Counts[state.TaskPending])
	}
	return nil
}

// checkAwaited verifies that who hears of whom is right, and that each task that
// may start is known to be ready.
func (s *Set) checkAwaited(jobs *state.Table) error {
	count := 0
	for n, list := range s.waiters {
		count += len(list)
		if s.arrays[n] == nil {
			return fmt.Errorf("arrays %v wait for the tasks of job %d, which is over or has none", list, n)
		}
	}
	for n, a := range s.arrays {
		p := jobs.Get(n)
		count -= len(p.Waits.Arrays())
		awaited := awaitedBy(p, jobs)
		for _, q := range awaited {
			if q == nil || q.State.Final() || !slices.Contains(s.waiters[q.Number], n) {
				return fmt.Errorf("array %d waits for tasks of another, and does not hear of them", n)
			}
		}
		for at := 0; len(awaited) > 0 && at < p.Tasks.Len(); at++ {
			c := chanceOf(p.Tasks.Index(at), awaited)
			switch st := p.Tasks.At(at); {
			case st == state.TaskPending && (c == hopeless || c == ready && !slices.Contains(a.ready, at)):
				return fmt.Errorf("task %d_%d is pending, though what it waits for is over", n, p.Tasks.Index(at))
			case (st == state.TaskLive || st == state.TaskSucceeded || st == state.TaskFailed) && c != ready:
				return fmt.Errorf("task %d_%d is %q, before what it waits for", n, p.Tasks.Index(at), st)
			}
		}
	}
	if count != 0 {
		return fmt.Errorf("arrays hear of %d others too many", count)
	}
	return nil
}
