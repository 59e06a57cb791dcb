package control

import (
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// ActTasks asks for an action on some tasks of an array. The answer is Outcome.
type ActTasks struct {
	Act     // its Numbers are not looked at
	Parent  job.Number
	Indexes job.Indexes
}

func (e ActTasks) apply(c *Controller, now sched.Time) any {
	p := c.job(e.Parent)
	switch {
	case p == nil:
		return Outcome{Refusal: state.NoSuchJob(fmt.Sprint(e.Parent))}
	case p.Tasks == nil:
		return Outcome{Refusal: &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("job %d has no tasks", p.Number)}}
	case !e.Indexes.Within(p.Tasks.All):
		return Outcome{Refusal: &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("job %d has no task %s", p.Number, e.Indexes.Short()),
			Hint: "its tasks are " + p.Tasks.All.Short()}}
	}
	out := Outcome{Before: p.Status()}
	if e.Indexes.Len() == 1 {
		out.Before = c.taskState(p, e.Indexes[0].First)
	}
	said := map[string]int{}
	for _, r := range e.Indexes {
		for i := r.First; i <= r.Last; i++ {
			o := c.actTask(now, p, i, e.Act)
			if o.Refusal != nil {
				out.Refusal = o.Refusal
				return out
			}
			said[o.Message]++
		}
	}
	if e.Action == Cancel {
		c.cancelPending(now, e)
	}
	c.settleArrays(now)
	for _, m := range slices.Sorted(maps.Keys(said)) {
		if e.Indexes.Len() > 1 {
			m = fmt.Sprintf("%d %s", said[m], m)
		}
		out.Message = joinText(out.Message, m)
	}
	if out.After = c.job(e.Parent).Status(); e.Indexes.Len() == 1 {
		out.After = c.taskState(c.job(e.Parent), e.Indexes[0].First)
	}
	return out
}

// actTask acts on the task's job. Pending tasks, which have none, can only be
// cancelled: cancelPending does it for all at once.
func (c *Controller) actTask(now sched.Time, p *state.Job, index int, e Act) Outcome {
	switch s, _ := p.Tasks.State(index); {
	case s == state.TaskLive:
		return c.act(now, c.job(c.arrays[p.Number].live[index]), e)
	case s != state.TaskPending:
		return Outcome{Message: "already " + string(endState(s))}
	case e.Action == Cancel:
		return Outcome{Message: "cancelled"}
	}
	return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("task %d_%d is not in the queue yet: it can only be cancelled", p.Number, index),
		Hint: fmt.Sprintf("%s the whole job: %d", e.Action, p.Number)}}
}

func (c *Controller) cancelPending(now sched.Time, e ActTasks) {
	p := c.job(e.Parent)
	if p.Tasks.Counts[state.TaskPending] == 0 {
		return
	}
	t := p.Tasks.Clone()
	for _, r := range e.Indexes {
		for i := r.First; i <= r.Last; i++ {
			if at, _ := t.Position(i); t.At(at) == state.TaskPending {
				t.Set(at, state.TaskCancelled)
			}
		}
	}
	c.storeTasks(p.Number, t)
	c.change(now, p, fmt.Sprintf("tasks %s cancelled by %s", e.Indexes.Short(), e.By), func(p *state.Job) { p.Tasks = t })
	c.touch(p.Number)
}

// taskState is the state of a task as a job's.
func (c *Controller) taskState(p *state.Job, index int) job.State {
	switch s, _ := p.Tasks.State(index); s {
	case state.TaskPending:
		return p.State
	case state.TaskLive:
		return c.job(c.arrays[p.Number].live[index]).State
	default:
		return endState(s)
	}
}

// endState is the inverse of taskEnd.
func endState(s state.TaskState) job.State {
	switch s {
	case state.TaskSucceeded:
		return job.Finished
	case state.TaskFailed, state.TaskMissed:
		return job.Failed
	}
	return job.Cancelled
}

// cancelArray cancels an array with all that is left of it.
func (c *Controller) cancelArray(now sched.Time, p *state.Job, reason job.Reason, text string) Outcome {
	if p.Ending != nil && p.Ending.Then == job.Cancelled {
		return Outcome{Message: "is being cancelled already"}
	}
	c.endArray(now, p, state.Ending{Then: job.Cancelled, Reason: reason, Text: text})
	c.settleArrays(now)
	if c.job(p.Number).State.Final() {
		return Outcome{Message: "cancelled"}
	}
	return Outcome{Message: "is being cancelled"}
}

// actActive does to all tasks of an array that hold something what makes sense
// for such jobs alone.
func (c *Controller) actActive(now sched.Time, p *state.Job, e Act) Outcome {
	did, last := 0, Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("no task of job %d runs", p.Number)}}
	for _, j := range c.children(p.Number) {
		if !j.State.Active() {
			continue
		}
		if last = c.act(now, j, e); last.Refusal == nil {
			did++
		}
	}
	if did == 0 {
		return last
	}
	return Outcome{Message: fmt.Sprintf("%s of %d tasks", e.Action, did)}
}

// holdChildren holds or releases the tasks of an array that wait, with it.
func (c *Controller) holdChildren(now sched.Time, p *state.Job, from, to job.State, line string) {
	for _, j := range c.children(p.Number) {
		if j.State == from {
			c.change(now, j, line, func(j *state.Job) { j.State = to })
		}
	}
	c.touch(p.Number)
}
