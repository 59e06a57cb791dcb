package control

import (
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/control/array"
	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/internal/state"
)

// ActTasks asks for an action on some tasks of an array.
type ActTasks struct {
	Act     // its Numbers are not looked at
	Parent  job.Number
	Indexes indexes.Set
}

func (e ActTasks) apply(s *step) (Result, *state.Refusal) {
	p := s.jobs.get(e.Parent)
	switch {
	case p == nil:
		return Result{Refusal: state.NoSuchJob(fmt.Sprint(e.Parent))}, nil
	case p.Tasks == nil:
		return Result{Refusal: &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("job %d has no tasks", p.Number)}}, nil
	case !e.Indexes.Within(p.Tasks.All):
		return Result{Refusal: &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("job %d has no task %s", p.Number, e.Indexes.Short()),
			Hint: "its tasks are " + p.Tasks.All.Short()}}, nil
	}
	if r := e.store(s, e.Indexes.Len()); r != nil {
		return Result{Refusal: r}, nil
	}
	out := Result{Before: p.Status()}
	if e.Indexes.Len() == 1 {
		out.Before = e.taskState(s, p, e.Indexes[0].First)
	}
	said := map[string]int{}
	for _, r := range e.Indexes {
		for i := r.First; i <= r.Last; i++ {
			o := e.Act.actTask(s, p, i)
			if o.Refusal != nil {
				out.Refusal = o.Refusal
				return out, nil
			}
			said[o.Message]++
		}
	}
	if e.Action == Cancel {
		e.cancelPending(s)
	}
	s.arrays.update()
	for _, m := range slices.Sorted(maps.Keys(said)) {
		if e.Indexes.Len() > 1 {
			m = fmt.Sprintf("%d %s", said[m], m)
		}
		out.Message = joinText(out.Message, m)
	}
	if out.After = s.jobs.get(e.Parent).Status(); e.Indexes.Len() == 1 {
		out.After = e.taskState(s, s.jobs.get(e.Parent), e.Indexes[0].First)
	}
	return out, nil
}

func (e ActTasks) audit(o Result) Audit {
	a := Audit{Object: fmt.Sprintf("job %d tasks %s", e.Parent, e.Indexes), Change: string(e.Action), Refusal: o.Refusal}
	if o.Refusal == nil && o.Before != o.After {
		a.Change += fmt.Sprintf("; %s -> %s", o.Before, o.After)
	}
	return a
}

// actTask acts on the task's job. Pending tasks, which have none, can only be
// cancelled: cancelPending does it for all at once.
func (e Act) actTask(s *step, p *state.Job, index int) Result {
	switch is, _ := p.Tasks.State(index); {
	case is == state.TaskLive:
		return e.act(s, s.jobs.get(s.arrays.Of(p.Number).Child(index)))
	case is != state.TaskPending:
		return Result{Message: "already " + string(array.EndOf(is))}
	case e.Action == Cancel:
		return Result{Message: "cancelled"}
	}
	return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("task %d_%d is not in the queue yet: it can only be cancelled", p.Number, index),
		Hint: fmt.Sprintf("%s the whole job: %d", e.Action, p.Number)}}
}

func (e ActTasks) cancelPending(s *step) {
	p := s.jobs.get(e.Parent)
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
	s.jobs.storeTasks(p.Number, t)
	s.jobs.change(p, fmt.Sprintf("tasks %s cancelled by %s", e.Indexes.Short(), e.By), func(p *state.Job) { p.Tasks = t })
	s.arrays.Touch(p.Number)
}

// taskState is the state of a task as a job's.
func (e ActTasks) taskState(s *step, p *state.Job, index int) job.State {
	switch is, _ := p.Tasks.State(index); is {
	case state.TaskPending:
		return p.State
	case state.TaskLive:
		return s.jobs.get(s.arrays.Of(p.Number).Child(index)).State
	default:
		return array.EndOf(is)
	}
}

// actActive does to all tasks of an array that hold something what makes sense
// for such jobs alone.
func (e Act) actActive(s *step, p *state.Job) Result {
	did, last := 0, Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("no task of job %d runs", p.Number)}}
	for _, j := range s.arrays.children(p.Number) {
		if !j.State.Active() {
			continue
		}
		if last = e.act(s, j); last.Refusal == nil {
			did++
		}
	}
	if did == 0 {
		return last
	}
	return Result{Message: fmt.Sprintf("%s of %d tasks", e.Action, did)}
}
