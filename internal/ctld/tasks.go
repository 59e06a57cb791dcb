package ctld

import (
	"errors"
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Arrays and their tasks, between the controller's picture and the wire's. In a
// list, an array's line stands for its tasks that wait, and each of its tasks
// that has started has a line of its own.

// lists says whether a job has a line of its own in a list.
func (f filter) lists(j *state.Job, sums map[job.Number]*state.Summary, private func(*state.Owner) bool) bool {
	switch {
	case j.Parent > 0 && j.State.Pending() && sums[j.Parent] != nil:
		return false // its array's line stands for it
	case j.Tasks == nil || j.State.Final():
		return f.matches(j, private)
	case len(sums[j.Number].Waiting) == 0:
		return false
	}
	waits := *j
	waits.First = 0 // what the line stands for has not begun
	return f.matches(&waits, private)
}

// row is a job's line in a list.
func (s *Server) row(v *state.View, id identity, j *state.Job, sum *state.Summary) api.Job {
	if j.Tasks == nil {
		return s.toAPI(v, id, j)
	}
	waits := *j
	if sum != nil {
		waits.First, waits.Started = 0, 0
	}
	out := s.toAPI(v, id, &waits)
	out.Tasks = &api.TaskSets{Indexes: j.Tasks.Indexes, Parallelism: j.Tasks.Parallelism}
	if sum != nil {
		out.Tasks.Waiting, out.Tasks.NumWaiting = sum.Waiting.String(), sum.Waiting.Len()
		s.whyArray(&out, v, id, j, *sum)
	}
	return out
}

// whyArray is why an array's tasks wait.
func (s *Server) whyArray(out *api.Job, v *state.View, id identity, p *state.Job, sum state.Summary) {
	if p.State != job.Queued || p.Ending != nil {
		return
	}
	r := v.WaitingArray(p, sum)
	out.Reason, out.ReasonText, out.EstStart = string(r.Code), r.Text, toTime(r.At)
	if !s.mayTouch(id, p.Owner) {
		out.ReasonText = ""
	}
}

// tasksToAPI completes the detail of an array.
func (s *Server) tasksToAPI(out *api.Job, id identity, v *state.View, p *state.Job) {
	t := p.Tasks
	if t == nil {
		return
	}
	out.Tasks = &api.TaskSets{
		Indexes: t.Indexes, Parallelism: t.Parallelism,
		Succeeded: t.In(state.TaskSucceeded).String(), NumSucceeded: t.Counts[state.TaskSucceeded],
		Failed: t.Failed().String(), NumFailed: t.NumFailed(),
		Cancelled: t.In(state.TaskCancelled).String(), NumCancelled: t.Counts[state.TaskCancelled],
	}
	if p.State.Final() {
		return
	}
	sum := v.Summary(p)
	out.Tasks.Waiting, out.Tasks.NumWaiting, out.Tasks.NumActive = sum.Waiting.String(), sum.Waiting.Len(), sum.Active
	s.whyArray(out, v, id, p, sum)
}

// array tells a rank of the array that its job is a task of.
func (s *Server) array(o *api.RunOrder, j *state.Job) {
	p := s.loop.view.Load().Job(j.Parent)
	if j.Parent == 0 || p == nil || p.Tasks == nil {
		return
	}
	all := p.Tasks.All
	o.Array = &job.ArrayTask{Parent: p.Number, Index: j.Index, First: all[0].First, Last: all[len(all)-1].Last, Count: all.Len()}
}

// pastTask finds a task that is no job of the table; refusal is the answer if
// there is none.
func (s *Server) pastTask(parent job.Number, index int, refusal *state.Refusal) (*state.Job, error) {
	p := s.loop.view.Load().Job(parent)
	var err error
	if p == nil {
		if p, err = s.history(parent); err != nil || p == nil {
			return nil, errors.Join(err, refused(refusal))
		}
	}
	n, ok, err := s.store.NumberOf(p.TaskUUID(index))
	switch {
	case err != nil:
		return nil, err
	case ok:
		return s.history(n)
	}
	j, why := p.PendingTask(index)
	if why != nil {
		return nil, refused(why)
	}
	return j, nil
}

// taskTarget resolves tasks that an action names, as 123_7 and 123_[3-9]; nil
// with the answer if there is nothing to do.
func (s *Server) taskTarget(id identity, text string, n job.Number, set job.Indexes) (*target, api.ActionResult) {
	p := s.loop.view.Load().Job(n)
	if p == nil {
		var err error
		if p, err = s.history(n); err != nil || p == nil {
			return nil, api.ActionResult{ID: text, Error: &api.Error{Status: 404, Code: api.CodeNotFound, Message: fmt.Sprintf("there is no job %d", n)}}
		}
	}
	out := api.ActionResult{ID: text, Number: n}
	switch {
	case !s.mayTouch(id, p.Owner):
		out.Error = &api.Error{Status: 403, Code: api.CodeDenied, Message: fmt.Sprintf("job %d belongs to %s", n, p.Owner.User)}
	case p.State.Final():
		out.Before, out.After, out.Message = p.State, p.State, "its array is already "+string(p.State)
	default:
		return &target{number: n, admin: id.user != p.Owner.User, tasks: set}, out
	}
	return nil, out
}

// waitingTask is the job to ask the scheduler about: of an array the first task
// that waits in the queue. It is nil, with the reason in the answer, where there
// is none.
func (s *Server) waitingTask(out *api.Explanation, j *state.Job) *state.Job {
	v := s.loop.view.Load()
	p := j
	switch {
	case j.Tasks == nil && j.Number != 0:
		return j
	case j.Tasks == nil:
		p = v.Job(j.Parent)
	}
	if p == nil || p.Ending != nil {
		return nil
	}
	sum := v.Summary(p)
	if sum.First != nil {
		return sum.First
	}
	if r := v.WaitingArray(p, sum); r.Code != "" {
		out.Reasons = append(out.Reasons, api.Reason{Code: string(r.Code), Text: r.Text})
	}
	return nil
}

// arrayHasNone refuses what only a single task has.
func arrayHasNone(p *state.Job, what, command string) error {
	return &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("job %d is an array: each of its tasks has a %s of its own", p.Number, what),
		Hint: fmt.Sprintf("name a task, as %s %d_%d", command, p.Number, p.Tasks.All[0].First)}
}
