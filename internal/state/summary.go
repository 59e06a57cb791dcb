package state

import (
	"cmp"
	"fmt"
	"strconv"

	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/sched"
)

// CodeArrayLimit is why a task waits that is no job yet.
const CodeArrayLimit sched.Code = "JobArrayTaskLimit"

// PendingTask is a task of the array that is no job, as it would look as one.
func (p *Job) PendingTask(index int) (*Job, *Refusal) {
	if p.Tasks == nil {
		return nil, &Refusal{Code: NotFound, Message: fmt.Sprintf("job %d has no tasks", p.Number)}
	}
	s, ok := p.Tasks.State(index)
	if !ok {
		return nil, &Refusal{Code: NotFound, Message: fmt.Sprintf("job %d has no task %d", p.Number, index), Hint: "its tasks are " + p.Tasks.All.Short()}
	}
	if s != TaskPending && s != TaskCancelled && s != TaskMissed {
		return nil, NoSuchJob(fmt.Sprintf("%d_%d", p.Number, index)) // it is or was a job, which is not here
	}
	j := &Job{
		UUID: p.TaskUUID(index), Parent: p.Number, Index: index, Doc: p.Document(), Name: p.Name, Owner: p.Owner, Request: p.Request,
		State: p.State, Submitted: p.Submitted, Since: p.Submitted, Version: p.Version << 32,
	}
	switch s {
	case TaskMissed:
		j.State, j.Reason, j.Text = job.Cancelled, job.DependencyFailed, "the task of its index that it waited for has not finished well"
	case TaskCancelled:
		j.State, j.Reason, j.Text = job.Cancelled, cmp.Or(p.Reason, job.ByUser), "cancelled before it was in the queue"
		j.Ended = p.Ended
	}
	return j, nil
}

// TaskUUID is the UUID of the task with an index.
func (p *Job) TaskUUID(index int) UUID { return p.UUID.Derive(strconv.Itoa(index)) }

// Summary is what an array's children that are not over say of it.
type Summary struct {
	Active  int         // tasks that hold an allocation, or are to have that of another one
	Waiting indexes.Set // tasks that wait, whether they are jobs yet or not
	First   *Job        // a task that waits in the queue, nil if none does
}

// Summarize adds a child to its array's summary.
func (s *Summary) add(j *Job) {
	switch {
	case j.State.Active():
		s.Active++
	case j.State.Pending():
		s.Waiting = s.Waiting.With(j.Index)
		if s.First == nil && j.State == job.Queued {
			s.First = j
		}
	}
}

// Summary looks at the tasks of one array.
func (v *View) Summary(p *Job) Summary {
	s := Summary{Waiting: p.Tasks.In(TaskPending)}
	for j := range v.Jobs.liveFrom(p.Number) {
		if j.Parent == p.Number {
			s.add(j)
		}
	}
	return s
}

// Summaries looks at all tasks of all arrays that are not over, at once.
func (v *View) Summaries() map[job.Number]*Summary {
	out := map[job.Number]*Summary{}
	for j := range v.Live() { // a parent's number is below those of its tasks
		switch {
		case j.Tasks != nil:
			out[j.Number] = &Summary{Waiting: j.Tasks.In(TaskPending)}
		case j.Parent > 0 && out[j.Parent] != nil:
			out[j.Parent].add(j)
		}
	}
	return out
}

// WaitingArray is why an array's waiting tasks do not run.
func (v *View) WaitingArray(p *Job, s Summary) sched.Reason {
	switch {
	case s.First != nil:
		return v.Waiting(s.First)
	case len(s.Waiting) == 0:
		return sched.Reason{}
	case p.Waits.Unmet() || len(p.Waits.Arrays()) > 0 && (p.Tasks.Parallelism == 0 || s.Active < p.Tasks.Parallelism):
		return sched.Reason{Code: sched.CodeDependency, Text: p.Waits.Text()}
	case p.Tasks.Parallelism > 0:
		return sched.Reason{Code: CodeArrayLimit, Text: fmt.Sprintf("at most %d of its tasks may be active at once", p.Tasks.Parallelism)}
	}
	return sched.Reason{Code: CodeArrayLimit, Text: "its tasks come into the queue one after the other"}
}
