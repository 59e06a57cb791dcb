package control

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// endStep lets all follow that follows from a step: arrays whose tasks changed,
// and jobs that waited for those that began or ended.
func (c *Controller) endStep(now sched.Time) {
	c.settleArrays(now)
	for c.settle(now); len(c.touched) > 0; c.settle(now) {
		c.settleArrays(now)
	}
}

// settleArrays ends a step: arrays whose tasks changed take it in, end if they
// must, and fill their windows.
func (c *Controller) settleArrays(now sched.Time) {
	for len(c.touched) > 0 {
		todo := c.touched
		c.touched = nil
		slices.Sort(todo)
		for _, n := range todo {
			if c.arrays[n] != nil {
				c.settleArray(now, c.job(n))
			}
		}
	}
}

func (c *Controller) settleArray(now sched.Time, p *state.Job) {
	a := c.arrays[p.Number]
	p = c.hearCorr(now, c.takeIn(now, p, a), a)
	if p.Ending == nil {
		if how := c.verdict(p, a); how != nil {
			c.endArray(now, p, *how)
			p = c.job(p.Number)
		}
	}
	if len(a.ended) > 0 {
		return // it was touched again
	}
	if len(a.live) == 0 && p.Tasks.Counts[state.TaskPending] == 0 {
		c.finishArray(now, p)
		return
	}
	c.fill(now, p, a)
}

// takeIn puts into the parent what its children have come to.
func (c *Controller) takeIn(now sched.Time, p *state.Job, a *array) *state.Job {
	if len(a.ended) == 0 && a.begun == 0 && a.failures == 0 {
		return p
	}
	t := p.Tasks.Clone()
	for _, n := range a.ended {
		j := c.job(n)
		at, _ := t.Position(j.Index)
		s := taskEnd(j.State)
		t.Set(at, s)
		if s == state.TaskFailed {
			t.NoteFailure(fmt.Sprintf("%d: %s", j.Index, cmp.Or(j.Text, string(j.Reason))))
		}
	}
	t.Failures += a.failures
	line, begun := "", p.First == 0 && a.begun > 0
	if begun {
		line = "its first task runs"
	}
	c.storeTasks(p.Number, t)
	p = c.change(now, p, line, func(p *state.Job) {
		p.Tasks = t
		if begun {
			p.First, p.Started = a.begun, a.begun
		}
	})
	a.ended, a.begun, a.failures = nil, 0, 0
	if begun {
		c.begunArray(now, p)
	}
	return p
}

// begunArray follows the first start of a task: the array has started in time,
// and its run time counts from here where all of it counts together.
func (c *Controller) begunArray(now sched.Time, p *state.Job) {
	c.watchLimit(p)
	c.tell(p)
	if p.Request.MaxQueued == 0 && p.Request.NotAfter == 0 {
		return
	}
	for _, j := range c.children(p.Number) {
		if j.State == job.Queued {
			v := *j
			c.enqueue(now, &v)
			c.jobs.Put(v.Number, &v)
		}
	}
}

// taskEnd is what a child's end is to its array.
func taskEnd(s job.State) state.TaskState {
	switch s {
	case job.Finished:
		return state.TaskSucceeded
	case job.Failed:
		return state.TaskFailed
	}
	return state.TaskCancelled
}

// verdict is what ends an array before all of its tasks are over; nil: nothing.
func (c *Controller) verdict(p *state.Job, a *array) *state.Ending {
	t := p.Tasks
	switch failed := t.NumFailed(); {
	case a.whole != nil:
		return a.whole
	case failed > mayFail(t.Array):
		return &state.Ending{Then: job.Failed, Reason: job.FailedIndexes, Text: failures(t)}
	case early(t.Array) && t.Enough >= needs(t.Array):
		return &state.Ending{Then: job.Finished, Text: fmt.Sprintf("%d of its tasks have succeeded, which is enough", t.Enough)}
	}
	return nil
}

// endArray makes no more jobs of an array's tasks and ends those that are
// there; when the last is over the array is what how says.
func (c *Controller) endArray(now sched.Time, p *state.Job, how state.Ending) {
	t := p.Tasks.Clone()
	for at, ok := t.NextPending(); ok; at, ok = t.NextPending() {
		t.Set(at, state.TaskCancelled)
	}
	c.storeTasks(p.Number, t)
	p = c.change(now, p, how.Text, func(p *state.Job) { p.Tasks, p.Ending = t, &how })
	for _, j := range c.children(p.Number) {
		c.cancelChild(now, j, how.Reason, how.Text)
	}
	c.touch(p.Number)
}

func (c *Controller) cancelChild(now sched.Time, j *state.Job, why job.Reason, text string) {
	switch {
	case j.State.Pending():
		c.change(now, j, text, func(j *state.Job) { j.State, j.Reason, j.Text = job.Cancelled, why, text })
	case j.Ending == nil || j.Ending.Then != job.Cancelled:
		how := c.stopWith(j)
		how.Reason, how.Text, how.Then = why, text, job.Cancelled
		c.end(now, j, how)
	}
}

// finishArray ends an array whose tasks are all over.
func (c *Controller) finishArray(now sched.Time, p *state.Job) {
	t := p.Tasks
	how := state.Ending{Then: job.Finished}
	switch {
	case p.Ending != nil:
		how = *p.Ending
		if how.Reason == job.FailedIndexes {
			how.Text = failures(t) // more may have failed meanwhile
		}
	case t.Counts[state.TaskFailed] == 0 && t.Counts[state.TaskMissed] > 0:
		how = state.Ending{Then: job.Failed, Reason: job.DependencyFailed, Text: failures(t)}
	case t.Counts[state.TaskFailed] > 0:
		how = state.Ending{Then: job.Failed, Reason: job.FailedIndexes, Text: failures(t)}
	case t.Counts[state.TaskCancelled] > 0:
		how = state.Ending{Then: job.Cancelled, Reason: job.ByUser, Text: fmt.Sprintf("tasks %s were cancelled", t.In(state.TaskCancelled).Short())}
	}
	delete(c.arrays, p.Number)
	c.dropCorr(p)
	c.change(now, p, endLine(how.Then, how.Text), func(p *state.Job) {
		p.State, p.Reason, p.Text, p.Ending = how.Then, how.Reason, how.Text, nil
	})
}

// mayFill says whether tasks of a parent may become jobs.
func mayFill(j *state.Job) bool {
	return j.State == job.Queued && j.Ending == nil && !j.Waits.Open() && j.Tasks.Counts[state.TaskPending] > 0
}

// fill makes jobs of as many tasks as the window has room for.
func (c *Controller) fill(now sched.Time, p *state.Job, a *array) {
	if !mayFill(p) || !a.window(p.Tasks) {
		return
	}
	t := p.Tasks.Clone()
	for a.window(t) {
		at, ok := a.take(p, t)
		if !ok {
			break
		}
		t.Set(at, state.TaskLive)
		c.makeChild(now, p, a, t.Index(at))
	}
	c.storeTasks(p.Number, t)
	c.change(now, p, "", func(p *state.Job) { p.Tasks = t })
}

func (c *Controller) makeChild(now sched.Time, p *state.Job, a *array, index int) {
	j := &state.Job{
		Number: c.next, UUID: p.TaskUUID(index), Parent: p.Number, Index: index, Doc: p.Document(), Name: p.Name, Owner: p.Owner, Request: p.Request,
		Expected: p.Expected, State: job.Queued, Submitted: p.Submitted, Since: now, Version: 1,
	}
	a.live[index] = j.Number
	a.count(j, +1)
	c.add(now, j, fmt.Sprintf("task %d of job %d is in the queue", index, p.Number))
}

// needs is how many tasks of Enough must succeed for the job to succeed.
func needs(a *state.Array) int {
	if a.EnoughCount > 0 {
		return a.EnoughCount
	}
	return a.Enough.Len()
}

// early says that the job may succeed before all of its tasks are over.
func early(a *state.Array) bool { return a.EnoughCount > 0 || a.EnoughIndexes != "" }

// mayFail is how many tasks may fail without ending the others.
func mayFail(a *state.Array) int {
	switch {
	case a.FailFast:
		return 0
	case a.MaxFailed != nil:
		return *a.MaxFailed
	}
	return job.MaxTasks
}
