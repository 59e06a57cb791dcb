package control

import (
	"fmt"
	"slices"

	"gbatch/internal/control/array"
	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// arrays is what becomes of arrays, by what array.Set keeps of them.
type arrays struct {
	*array.Set
	jobs     *jobs
	attempts *attempts
}

// children is the tasks of an array that are not over, by index.
func (as *arrays) children(n job.Number) []*state.Job {
	var out []*state.Job
	for _, child := range as.Of(n).Children() {
		out = append(out, as.jobs.get(child))
	}
	return out
}

// load rebuilds what is known of arrays, when all records are there.
func (as *arrays) load(records map[job.Number][]state.Record) error {
	for p := range as.jobs.all() {
		if p.Tasks == nil || p.Tasks.Array != nil {
			continue
		}
		t, err := state.LoadTasks(records[p.Number], p.Tasks)
		if err != nil {
			return fmt.Errorf("job %d: %w", p.Number, err)
		}
		p.Tasks = t // nobody has seen the job yet
	}
	for p := range as.jobs.all() {
		if p.Tasks != nil && !p.State.Final() {
			as.Add(p, &as.jobs.table)
		}
	}
	for j := range as.jobs.all() {
		as.Live(j)
	}
	return nil
}

// update follows a step: arrays whose tasks changed take it in, end if they
// must, and fill their windows.
func (as *arrays) update() {
	for todo := as.Changed(); len(todo) > 0; todo = as.Changed() {
		for _, n := range todo {
			if a := as.Of(n); a != nil { // another may have ended it
				as.updateOne(as.jobs.get(n), a)
			}
		}
	}
}

func (as *arrays) updateOne(p *state.Job, a *array.Array) {
	p = as.takeInAwaited(as.takeIn(p, a), a)
	if p.Ending == nil {
		if how := a.Cut(p); how != nil {
			as.stop(p, *how)
			p = as.jobs.get(p.Number)
		}
	}
	p = as.holdAll(p, a)
	if len(a.Ended) > 0 {
		return // it was touched again
	}
	if a.Quiet() && p.Tasks.Counts[state.TaskPending] == 0 {
		as.close(p)
		return
	}
	as.fill(p, a)
}

// holdAll holds what waits of an array, if a task's end says so.
func (as *arrays) holdAll(p *state.Job, a *array.Array) *state.Job {
	why := a.Held
	a.Held = ""
	if why == "" || p.State != job.Queued {
		return p
	}
	for _, c := range as.children(p.Number) {
		if c.State == job.Queued {
			as.jobs.change(c, why, func(c *state.Job) { c.State, c.Reason, c.Text = job.OnHold, job.Prolog, why })
		}
	}
	return as.jobs.change(p, why, func(p *state.Job) { p.State, p.Reason, p.Text = job.OnHold, job.Prolog, why })
}

// waits says whether a task of an array waits still.
func (as *arrays) waits(p *state.Job) bool {
	return p.Tasks.Counts[state.TaskPending] > 0 || slices.ContainsFunc(as.children(p.Number), func(c *state.Job) bool {
		return c.State == job.Queued || c.State.Active() && !c.Holds()
	})
}

// takeIn puts into the parent what its children have come to.
func (as *arrays) takeIn(p *state.Job, a *array.Array) *state.Job {
	first := a.Begun
	if len(a.Ended) == 0 && first == 0 && a.Failures == 0 && a.Image == p.Tasks.Image {
		return p
	}
	line, begun := "", p.First == 0 && first > 0
	if begun {
		line = "its first task runs"
	}
	t := p.Tasks.Clone()
	a.TakeIn(t, &as.jobs.table)
	as.jobs.storeTasks(p.Number, t)
	p = as.jobs.change(p, line, func(p *state.Job) {
		p.Tasks = t
		if begun {
			p.First, p.Started = first, first
		}
	})
	if begun {
		as.begun(p)
	}
	return p
}

// takeInAwaited puts into the parent what became of tasks for which its own wait.
func (as *arrays) takeInAwaited(p *state.Job, a *array.Array) *state.Job {
	if len(p.Waits.Arrays()) == 0 {
		return p
	}
	t := p.Tasks.Clone()
	left := a.TakeInAwaited(p, t, &as.jobs.table)
	if !t.Changed() && len(left) == len(p.Waits.Tasks) {
		return p
	}
	as.jobs.storeTasks(p.Number, t)
	return as.jobs.change(p, "", func(p *state.Job) {
		w := *p.Waits
		w.Tasks = left
		p.Tasks, p.Waits = t, &w
	})
}

// begun follows the first start of a task: the array has started in time,
// and its run time counts from here where all of it counts together.
func (as *arrays) begun(p *state.Job) {
	as.jobs.watchLimit(p)
	as.jobs.depends.Notify(p.Number)
	if p.Request.MaxQueued == 0 && p.Request.NotAfter == 0 {
		return
	}
	for _, j := range as.children(p.Number) {
		if j.State == job.Queued {
			as.jobs.enqueueAgain(j)
		}
	}
}

// stop orders a job's end: an array's with all of its tasks, and what runs by its
// nodes. One that waits has ended then.
func (as *arrays) stop(j *state.Job, how state.Ending) {
	switch {
	case j.Tasks != nil:
		as.stopTasks(j, how)
	case j.State.Pending():
		as.jobs.end(j, how.Then, how.Reason, how.Text)
	default:
		as.attempts.stop(j, how)
	}
}

// stopTasks makes no more jobs of an array's tasks and stops those that are
// there; when the last is over the array is what how says.
func (as *arrays) stopTasks(p *state.Job, how state.Ending) {
	t := p.Tasks.Clone()
	for at, ok := t.NextPending(); ok; at, ok = t.NextPending() {
		t.Set(at, state.TaskCancelled)
	}
	as.jobs.storeTasks(p.Number, t)
	how.Since = as.jobs.out.Now
	p = as.jobs.change(p, how.Text, func(p *state.Job) { p.Tasks, p.Ending = t, &how })
	for _, j := range as.children(p.Number) {
		if j.Ending == nil || j.Ending.Then != job.Cancelled {
			as.stop(j, state.Ending{Reason: how.Reason, Text: how.Text, Then: job.Cancelled})
		}
	}
	as.Touch(p.Number)
}

// close takes in that all tasks of an array are over.
func (as *arrays) close(p *state.Job) {
	how := array.Ending(p)
	as.Remove(p)
	as.jobs.change(p, ranks.EndLine(p, how.Then, how.Text), func(p *state.Job) {
		p.State, p.Reason, p.Text, p.Ending = how.Then, how.Reason, how.Text, nil
	})
}

// fill makes jobs of as many tasks as the window has room for.
func (as *arrays) fill(p *state.Job, a *array.Array) {
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
		as.makeChild(p, t.Index(at))
	}
	as.jobs.storeTasks(p.Number, t)
	as.jobs.change(p, "", func(p *state.Job) { p.Tasks = t })
}

func (as *arrays) makeChild(p *state.Job, index int) {
	j := &state.Job{
		Number: as.jobs.next, UUID: p.TaskUUID(index), Parent: p.Number, Index: index, Doc: p.Document(), Name: p.Name, Owner: p.Owner, Request: p.Request,
		Expected: p.Expected, State: job.Queued, Submitted: as.jobs.out.Now, Since: as.jobs.out.Now, Version: 1,
	}
	as.Live(j)
	as.jobs.add(j, fmt.Sprintf("task %d of job %d is in the queue", index, p.Number))
}
