package control

import (
	"fmt"

	"gbatch/internal/control/array"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// outside is the tasks that wait and are no jobs yet, by whose they are, for
// limits on queued jobs.
func (c *Controller) outside() []sched.Outside {
	var out []sched.Outside
	for n := range c.arrays.Numbers { // they are added up: order does not matter
		if p := c.job(n); p.Tasks.Counts[state.TaskPending] > 0 {
			out = append(out, sched.Outside{Project: p.Owner.Project, User: p.Owner.User, QOS: p.Owner.QOS, Jobs: p.Tasks.Counts[state.TaskPending]})
		}
	}
	return out
}

// children is the tasks of an array that are not over, by index.
func (c *Controller) children(n job.Number) []*state.Job {
	var out []*state.Job
	for _, child := range c.arrays.Of(n).Children() {
		out = append(out, c.job(child))
	}
	return out
}

// loadArrays rebuilds what is known of arrays, when all records are there.
func (c *Controller) loadArrays() error {
	for p := range c.jobs.all() {
		if p.Tasks == nil || p.Tasks.Array != nil {
			continue
		}
		t, err := state.LoadTasks(c.loading[p.Number], p.Tasks)
		if err != nil {
			return fmt.Errorf("job %d: %w", p.Number, err)
		}
		p.Tasks = t // nobody has seen the job yet
	}
	for p := range c.jobs.all() {
		if p.Tasks != nil && !p.State.Final() {
			c.arrays.Add(p, &c.jobs.table)
		}
	}
	for j := range c.jobs.all() {
		c.arrays.Live(j)
	}
	c.loading = nil
	return nil
}

// recordArray stores what was asked of an array, once.
func (c *step) recordArray(j *state.Job) {
	if j.Tasks == nil {
		return
	}
	c.storeTasks(j.Number, j.Tasks) // what is known from the beginning
	if !c.cfg.NoRecords {
		c.out.record(state.Record{Kind: state.KindTasks, Job: j.Number, Value: state.Encode(j.Tasks.Array.Tasks)})
	}
}

// storeTasks records the blocks that changed, and notifies those who wait for
// tasks: arrays for the ones of their own indexes, jobs for one that was no job yet.
func (c *step) storeTasks(n job.Number, t *state.Tasks) {
	indexes, blocks := t.TakeChanges(n, !c.cfg.NoRecords)
	c.arrays.TasksChanged(n, indexes)
	if c.depends.AwaitsTask(n, indexes) {
		c.depends.Notify(n)
	}
	c.out.record(blocks...)
}

// updateArrays follows a step: arrays whose tasks changed take it in, end if they
// must, and fill their windows.
func (c *step) updateArrays() {
	for todo := c.arrays.Changed(); len(todo) > 0; todo = c.arrays.Changed() {
		for _, n := range todo {
			if a := c.arrays.Of(n); a != nil { // another may have ended it
				c.updateArray(c.job(n), a)
			}
		}
	}
}

func (c *step) updateArray(p *state.Job, a *array.Array) {
	p = c.takeInAwaited(c.takeIn(p, a), a)
	if p.Ending == nil {
		if how := a.Cut(p); how != nil {
			c.endArray(p, *how)
			p = c.job(p.Number)
		}
	}
	if len(a.Ended) > 0 {
		return // it was touched again
	}
	if a.Quiet() && p.Tasks.Counts[state.TaskPending] == 0 {
		c.finishArray(p)
		return
	}
	c.fill(p, a)
}

// takeIn puts into the parent what its children have come to.
func (c *step) takeIn(p *state.Job, a *array.Array) *state.Job {
	first := a.Begun
	if len(a.Ended) == 0 && first == 0 && a.Failures == 0 {
		return p
	}
	line, begun := "", p.First == 0 && first > 0
	if begun {
		line = "its first task runs"
	}
	t := p.Tasks.Clone()
	a.TakeIn(t, &c.jobs.table)
	c.storeTasks(p.Number, t)
	p = c.change(p, line, func(p *state.Job) {
		p.Tasks = t
		if begun {
			p.First, p.Started = first, first
		}
	})
	if begun {
		c.begunArray(p)
	}
	return p
}

// takeInAwaited puts into the parent what became of tasks for which its own wait.
func (c *step) takeInAwaited(p *state.Job, a *array.Array) *state.Job {
	if len(p.Waits.Arrays()) == 0 {
		return p
	}
	t := p.Tasks.Clone()
	left := a.TakeInAwaited(p, t, &c.jobs.table)
	if !t.Changed() && len(left) == len(p.Waits.Tasks) {
		return p
	}
	c.storeTasks(p.Number, t)
	return c.change(p, "", func(p *state.Job) {
		w := *p.Waits
		w.Tasks = left
		p.Tasks, p.Waits = t, &w
	})
}

// begunArray follows the first start of a task: the array has started in time,
// and its run time counts from here where all of it counts together.
func (c *step) begunArray(p *state.Job) {
	c.watchLimit(p)
	c.depends.Notify(p.Number)
	if p.Request.MaxQueued == 0 && p.Request.NotAfter == 0 {
		return
	}
	for _, j := range c.children(p.Number) {
		if j.State == job.Queued {
			c.enqueueAgain(j)
		}
	}
}

// endArray makes no more jobs of an array's tasks and ends those that are
// there; when the last is over the array is what how says.
func (c *step) endArray(p *state.Job, how state.Ending) {
	t := p.Tasks.Clone()
	for at, ok := t.NextPending(); ok; at, ok = t.NextPending() {
		t.Set(at, state.TaskCancelled)
	}
	c.storeTasks(p.Number, t)
	p = c.change(p, how.Text, func(p *state.Job) { p.Tasks, p.Ending = t, &how })
	for _, j := range c.children(p.Number) {
		c.cancelChild(j, how.Reason, how.Text)
	}
	c.arrays.Touch(p.Number)
}

func (c *step) cancelChild(j *state.Job, why job.Reason, text string) {
	switch {
	case j.State.Pending():
		c.change(j, text, func(j *state.Job) { j.State, j.Reason, j.Text = job.Cancelled, why, text })
	case j.Ending == nil || j.Ending.Then != job.Cancelled:
		how := c.stopWith(j)
		how.Reason, how.Text, how.Then = why, text, job.Cancelled
		c.end(j, how)
	}
}

// finishArray ends an array whose tasks are all over.
func (c *step) finishArray(p *state.Job) {
	how := array.Outcome(p)
	c.arrays.Remove(p)
	c.change(p, endLine(how.Then, how.Text), func(p *state.Job) {
		p.State, p.Reason, p.Text, p.Ending = how.Then, how.Reason, how.Text, nil
	})
}

// fill makes jobs of as many tasks as the window has room for.
func (c *step) fill(p *state.Job, a *array.Array) {
	if !array.MayFill(p) || !a.Room(p.Tasks) {
		return
	}
	t := p.Tasks.Clone()
	for a.Room(t) {
		at, ok := a.Next(p, t)
		if !ok {
			break
		}
		t.Set(at, state.TaskLive)
		c.makeChild(p, t.Index(at))
	}
	c.storeTasks(p.Number, t)
	c.change(p, "", func(p *state.Job) { p.Tasks = t })
}

func (c *step) makeChild(p *state.Job, index int) {
	j := &state.Job{
		Number: c.jobs.next, UUID: p.TaskUUID(index), Parent: p.Number, Index: index, Doc: p.Document(), Name: p.Name, Owner: p.Owner, Request: p.Request,
		Expected: p.Expected, State: job.Queued, Submitted: c.now, Since: c.now, Version: 1,
	}
	c.arrays.Live(j)
	c.add(j, fmt.Sprintf("task %d of job %d is in the queue", index, p.Number))
}
