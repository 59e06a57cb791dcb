package jobs

import (
	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
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
func (s *Queries) row(v *state.View, id access.Identity, j *state.Job, sum *state.Summary) api.Job {
	if j.Tasks == nil {
		return wire.Job(v, j, s.Rights.Private(id, j.Owner))
	}
	waits := *j
	if sum != nil {
		waits.First, waits.Started = 0, 0
	}
	out := wire.Job(v, &waits, s.Rights.Private(id, j.Owner))
	out.Tasks = &api.TaskSets{Indexes: j.Tasks.Indexes}
	if !out.Private {
		out.Tasks.Parallelism = j.Tasks.Parallelism
	}
	if sum != nil {
		out.Tasks.Waiting, out.Tasks.NumWaiting = sum.Waiting.String(), sum.Waiting.Len()
		whyArray(&out, j, v.WaitingArray(j, *sum))
	}
	return out
}

// whyArray says why an array's tasks wait, if they wait for the queue, to those
// who may see the array.
func whyArray(out *api.Job, p *state.Job, r sched.Reason) {
	if p.State == job.Queued && p.Ending == nil && !out.Private {
		wire.Why(out, p, r)
	}
}

// tasksToAPI completes the detail of an array.
func tasksToAPI(out *api.Job, v *state.View, p *state.Job) {
	t := p.Tasks
	if t == nil {
		return
	}
	out.Tasks = &api.TaskSets{
		Indexes: t.Indexes, Parallelism: t.Parallelism,
		Succeeded: t.In(state.TaskSucceeded).String(), NumSucceeded: t.Counts[state.TaskSucceeded],
		Failed: t.In(state.TaskFailed).String(), NumFailed: t.Counts[state.TaskFailed],
		Cancelled: t.Cancelled().String(), NumCancelled: t.NumCancelled(),
	}
	if p.State.Final() {
		return
	}
	sum := v.Summary(p)
	out.Tasks.Waiting, out.Tasks.NumWaiting, out.Tasks.NumActive = sum.Waiting.String(), sum.Waiting.Len(), sum.Active
	whyArray(out, p, v.WaitingArray(p, sum))
}

// waitingTask is the job to ask the scheduler about: of an array the first task
// that waits in the queue. It is nil, with the reason in the answer, where there
// is none.
func (s *Queries) waitingTask(out *api.Explanation, j *state.Job) *state.Job {
	v := s.Loop.View()
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
