package control

import (
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/control/array"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// ActTasks asks for an action on some tasks of an array.
type ActTasks struct {
	Act     // its Numbers are not looked at
	Parent  job.Number
	Indexes job.Indexes
}

func (e ActTasks) apply(c *step) (Outcome, *state.Refusal) {
	p := c.job(e.Parent)
	switch {
	case p == nil:
		return Outcome{Refusal: state.NoSuchJob(fmt.Sprint(e.Parent))}, nil
	case p.Tasks == nil:
		return Outcome{Refusal: &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("job %d has no tasks", p.Number)}}, nil
	case !e.Indexes.Within(p.Tasks.All):
		return Outcome{Refusal: &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("job %d has no task %s", p.Number, e.Indexes.Short()),
			Hint: "its tasks are " + p.Tasks.All.Short()}}, nil
	}
	out := Outcome{Before: p.Status()}
	if e.Indexes.Len() == 1 {
		out.Before = e.taskState(c, p, e.Indexes[0].First)
	}
	said := map[string]int{}
	for _, r := range e.Indexes {
		for i := r.First; i <= r.Last; i++ {
			o := e.Act.actTask(c, p, i)
			if o.Refusal != nil {
				out.Refusal = o.Refusal
				return out, nil
			}
			said[o.Message]++
		}
	}
	if e.Action == Cancel {
		e.cancelPending(c)
	}
	c.updateArrays()
	for _, m := range slices.Sorted(maps.Keys(said)) {
		if e.Indexes.Len() > 1 {
			m = fmt.Sprintf("%d %s", said[m], m)
		}
		out.Message = joinText(out.Message, m)
	}
	if out.After = c.job(e.Parent).Status(); e.Indexes.Len() == 1 {
		out.After = e.taskState(c, c.job(e.Parent), e.Indexes[0].First)
	}
	return out, nil
}

func (e ActTasks) audit(o Outcome) Audit {
	a := Audit{Object: fmt.Sprintf("job %d tasks %s", e.Parent, e.Indexes), Change: string(e.Action), Refusal: o.Refusal}
	if o.Refusal == nil && o.Before != o.After {
		a.Change += fmt.Sprintf("; %s -> %s", o.Before, o.After)
	}
	return a
}

// actTask acts on the task's job. Pending tasks, which have none, can only be
// cancelled: cancelPending does it for all at once.
func (e Act) actTask(c *step, p *state.Job, index int) Outcome {
	switch s, _ := p.Tasks.State(index); {
	case s == state.TaskLive:
		return e.act(c, c.job(c.arrays.Of(p.Number).Child(index)))
	case s != state.TaskPending:
		return Outcome{Message: "already " + string(array.EndOf(s))}
	case e.Action == Cancel:
		return Outcome{Message: "cancelled"}
	}
	return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("task %d_%d is not in the queue yet: it can only be cancelled", p.Number, index),
		Hint: fmt.Sprintf("%s the whole job: %d", e.Action, p.Number)}}
}

func (e ActTasks) cancelPending(c *step) {
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
	c.change(p, fmt.Sprintf("tasks %s cancelled by %s", e.Indexes.Short(), e.By), func(p *state.Job) { p.Tasks = t })
	c.arrays.Touch(p.Number)
}

// taskState is the state of a task as a job's.
func (e ActTasks) taskState(c *step, p *state.Job, index int) job.State {
	switch s, _ := p.Tasks.State(index); s {
	case state.TaskPending:
		return p.State
	case state.TaskLive:
		return c.job(c.arrays.Of(p.Number).Child(index)).State
	default:
		return array.EndOf(s)
	}
}

// cancelArray cancels an array with all that is left of it.
func (c *step) cancelArray(p *state.Job, reason job.Reason, text string) Outcome {
	if p.Ending != nil && p.Ending.Then == job.Cancelled {
		return Outcome{Message: "is being cancelled already"}
	}
	c.endArray(p, state.Ending{Then: job.Cancelled, Reason: reason, Text: text})
	c.updateArrays()
	if c.job(p.Number).State.Final() {
		return Outcome{Message: "cancelled"}
	}
	return Outcome{Message: "is being cancelled"}
}

// actActive does to all tasks of an array that hold something what makes sense
// for such jobs alone.
func (e Act) actActive(c *step, p *state.Job) Outcome {
	did, last := 0, Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("no task of job %d runs", p.Number)}}
	for _, j := range c.children(p.Number) {
		if !j.State.Active() {
			continue
		}
		if last = e.act(c, j); last.Refusal == nil {
			did++
		}
	}
	if did == 0 {
		return last
	}
	return Outcome{Message: fmt.Sprintf("%s of %d tasks", e.Action, did)}
}

// holdChildren holds or releases the tasks of an array that wait, with it.
func (c *step) holdChildren(p *state.Job, from, to job.State, line string) {
	for _, j := range c.children(p.Number) {
		if j.State == from {
			c.change(j, line, func(j *state.Job) { j.State = to })
		}
	}
	c.arrays.Touch(p.Number)
}
