package control

import (
	"cmp"
	"fmt"

	"gbatch/internal/control/picture"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// update changes a job that waits, or the time limit of one that runs.
func (e Act) update(s *step, j *state.Job) Result {
	may := e.Operator
	if !may && e.Change.Limit > j.LimitNow() && j.State == job.Running && j.Ending == nil {
		if r := s.longer(j, e.Change.Limit); r != nil {
			return Result{Refusal: r}
		}
		may = true // that it runs on is nobody's loss
	}
	if r := e.Change.Refuse(j, may); r != nil {
		return Result{Refusal: r}
	}
	next, text := e.Change.To(j)
	if text == "" {
		return Result{Message: "has that already"}
	}
	late := s.late(j, cmp.Or(e.Change.Limit, j.LimitNow()))
	if next.Owner != *j.Owner {
		if r := e.reassign(s, j, &next); r != nil {
			return Result{Refusal: r}
		}
	}
	j = s.jobs.change(j, fmt.Sprintf("%s by %s", text, e.By), func(j *state.Job) {
		j.Request, j.Name, j.Owner, j.Attempt = s.intern.Request(*next.Request), next.Name, s.intern.Owner(next.Owner), next.Attempt
	})
	switch {
	case j.State == job.Queued:
		s.depends.eligible(j)
	case j.State.Active() && j.Tasks == nil:
		s.queue.sched.End(sched.JobID(j.Number)) // its end is another one now
		must(s.queue.sched.Adopt(picture.Running(j)))
		s.queue.due = true
		s.nodes.wakeAll(j)
	}
	for _, t := range s.arrays.children(j.Number) { // those that are made later ask what the array asks
		if !t.State.Final() && t.Ending == nil && (t.State.Pending() || e.Change.Priority == nil) {
			task := e
			if !t.State.Pending() {
				task.Change = e.Change.Stays()
			}
			task.update(s, t)
		}
	}
	return Result{Message: "has " + text + late}
}
