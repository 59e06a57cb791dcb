package control

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Tasks of an array may wait for those of other arrays, each for the ones of
// its own index (aftercorr). Nothing of that is stored but the arrays that are
// awaited: whether a task may become a job is in the letters of these. When a
// task is over, those that wait for it are looked at, and no others; a task that
// may start is put into its array's ready, from which the window is filled. An
// array that is over is awaited no more, for by then each task that waited for
// one of it has failed or need not wait.

// maxCorr bounds the arrays that one array's tasks wait for, and the arrays
// whose tasks wait for those of one.
const maxCorr = 100

// positions is a heap: the lowest position first.
type positions []int

func (p positions) Len() int           { return len(p) }
func (p positions) Less(i, j int) bool { return p[i] < p[j] }
func (p positions) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *positions) Push(x any)        { *p = append(*p, x.(int)) }
func (p *positions) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

// take is the position of the next task that may become a job.
func (a *array) take(p *state.Job, t *state.Tasks) (int, bool) {
	if len(p.Waits.Arrays()) == 0 {
		return t.NextPending()
	}
	for len(a.ready) > 0 {
		if at := heap.Pop(&a.ready).(int); t.At(at) == state.TaskPending { // it may have been cancelled
			return at, true
		}
	}
	return 0, false
}

// judgeTask says whether the task of an index may start by what became of those
// of its index in other arrays; the job is one that speaks against it for good.
func judgeTask(index int, awaited []*state.Job) (fate, *state.Job) {
	f := met
	for _, q := range awaited {
		switch s, _ := q.Tasks.State(index); s {
		case state.TaskSucceeded:
		case state.TaskPending, state.TaskLive:
			f = unsettled
		default:
			return never, q
		}
	}
	return f, nil
}

// missedTask says why the task of an index cannot start any more.
func missedTask(index int, q *state.Job) string {
	return fmt.Sprintf("%d: waits for task %d_%d to finish well, which cannot happen any more", index, q.Number, index)
}

// fit puts into new tasks what can be said of them at once: those that wait for
// a task that has not finished well can never start.
func fit(t *state.Tasks, awaited []*state.Job) {
	for at := range t.Len() {
		i := t.Index(at)
		if f, q := judgeTask(i, awaited); f == never {
			miss(t, at, missedTask(i, q))
		}
	}
}

// miss puts a pending task into the state of one that can never start.
func miss(t *state.Tasks, at int, why string) {
	t.Set(at, state.TaskMissed)
	t.NoteFailure(why)
}

// loadCorr rebuilds which tasks of an array may start, and that it is to hear
// of the arrays that it waits for.
func (c *Controller) loadCorr(p *state.Job, a *array) {
	awaited := c.awaitedBy(p)
	for _, q := range awaited {
		c.corr[q.Number] = append(c.corr[q.Number], p.Number)
	}
	for at := 0; len(awaited) > 0 && at < p.Tasks.Len(); at++ {
		if f, _ := judgeTask(p.Tasks.Index(at), awaited); f == met && p.Tasks.At(at) == state.TaskPending {
			a.ready = append(a.ready, at) // ascending: a heap
		}
	}
}

func (c *Controller) awaitedBy(p *state.Job) []*state.Job {
	var out []*state.Job
	for _, n := range p.Waits.Arrays() {
		out = append(out, c.job(n))
	}
	return out
}

// tellTasks lets those know that wait for tasks of an array that these changed:
// arrays for the ones of their own indexes, jobs for one that was no job yet.
func (c *Controller) tellTasks(n job.Number, indexes []int) {
	for _, w := range c.corr[n] {
		c.arrays[w].told = append(c.arrays[w].told, indexes...)
		c.touch(w)
	}
	if len(c.dependents.tasks[n]) > 0 && slices.ContainsFunc(indexes, func(i int) bool { return c.dependents.tasks[n][i] > 0 }) {
		c.tell(c.job(n))
	}
}

// hearCorr takes in what became of tasks that an array's tasks wait for.
func (c *Controller) hearCorr(now sched.Time, p *state.Job, a *array) *state.Job {
	told := a.told
	a.told = nil
	if p.Waits.Arrays() == nil {
		return p
	}
	awaited, t := c.awaitedBy(p), p.Tasks.Clone()
	for _, i := range told {
		at, ok := t.Position(i)
		if !ok || t.At(at) != state.TaskPending {
			continue
		}
		switch f, q := judgeTask(i, awaited); f {
		case met:
			heap.Push(&a.ready, at)
		case never:
			miss(t, at, missedTask(i, q))
		}
	}
	left := slices.DeleteFunc(slices.Clone(p.Waits.Tasks), func(n job.Number) bool { return c.job(n).State.Final() })
	if !t.Changed() && len(left) == len(p.Waits.Tasks) {
		return p
	}
	c.storeTasks(p.Number, t)
	return c.change(now, p, "", func(p *state.Job) {
		w := *p.Waits
		w.Tasks = left
		p.Tasks, p.Waits = t, &w
	})
}

// dropCorr forgets an array that is over: it hears of no other, and those that
// wait for its tasks look at it for the last time.
func (c *Controller) dropCorr(p *state.Job) {
	for _, n := range p.Waits.Arrays() {
		if c.corr[n] = slices.DeleteFunc(c.corr[n], func(w job.Number) bool { return w == p.Number }); len(c.corr[n]) == 0 {
			delete(c.corr, n)
		}
	}
	for _, w := range c.corr[p.Number] {
		c.touch(w)
	}
	delete(c.corr, p.Number)
}

// refuseCorr says why the tasks of a new job cannot wait for those of another
// one by one; nil if they can.
func (c *Controller) refuseCorr(tasks *state.Tasks, q *state.Job, id string, any bool) *state.Refusal {
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
	case len(c.corr[q.Number]) >= maxCorr:
		return refuse(fmt.Sprintf("%d arrays wait already for the tasks of job %s one by one", maxCorr, id), "use afterok, which waits for all of them")
	}
	if extra := tasks.All.Minus(q.Tasks.All); len(extra) > 0 {
		return refuse(fmt.Sprintf("tasks %s would wait for tasks that job %s does not have: its tasks are %s", extra.Short(), id, q.Tasks.All.Short()),
			"leave them out of gbatch.tasks")
	}
	return nil
}

// checkCorr verifies that who hears of whom is right, and that each task that
// may start is known to be ready.
func (c *Controller) checkCorr() error {
	count := 0
	for n, list := range c.corr {
		count += len(list)
		if c.arrays[n] == nil {
			return fmt.Errorf("arrays %v wait for the tasks of job %d, which is over or has none", list, n)
		}
	}
	for n, a := range c.arrays {
		p := c.job(n)
		count -= len(p.Waits.Arrays())
		awaited := c.awaitedBy(p)
		for _, q := range awaited {
			if q == nil || q.State.Final() || !slices.Contains(c.corr[q.Number], n) {
				return fmt.Errorf("array %d waits for tasks of another, and does not hear of them", n)
			}
		}
		for at := 0; len(awaited) > 0 && at < p.Tasks.Len(); at++ {
			f, _ := judgeTask(p.Tasks.Index(at), awaited)
			switch s := p.Tasks.At(at); {
			case s == state.TaskPending && (f == never || f == met && !slices.Contains(a.ready, at)):
				return fmt.Errorf("task %d_%d is pending, though what it waits for is over", n, p.Tasks.Index(at))
			case (s == state.TaskLive || s == state.TaskSucceeded || s == state.TaskFailed) && f != met:
				return fmt.Errorf("task %d_%d is %q, before what it waits for", n, p.Tasks.Index(at), s)
			}
		}
	}
	if count != 0 {
		return fmt.Errorf("arrays hear of %d others too many", count)
	}
	return nil
}

// failures puts into words which tasks failed and why the first of them did.
func failures(t *state.Tasks) string {
	failed := t.Failed()
	text := fmt.Sprintf("%d of %d tasks failed: %s", failed.Len(), t.Len(), failed.Short())
	return joinText(text, strings.Join(t.First, "; "))
}
