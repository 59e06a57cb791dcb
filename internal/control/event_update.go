package control

import (
	"fmt"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Change is what Update gives a job instead of what its document says. What is
// empty stays.
type Change struct {
	Name     string
	Limit    sched.Time // run time
	Priority *int       // what is added to it
}

// update changes a job that waits, or the time limit of one that runs. Users may
// only lower what others would have less by.
func (e Act) update(s *step, j *state.Job) Outcome {
	if r := e.mayUpdate(s, j); r != nil {
		return Outcome{Refusal: r}
	}
	req, name, said := *j.Request, j.Name, []string(nil)
	if p := e.Change.Priority; p != nil && *p != req.Priority {
		said = append(said, fmt.Sprintf("priority %d, was %d", *p, req.Priority))
		req.Priority = *p
	}
	if l := e.Change.Limit; l > 0 && l != req.Limit {
		said = append(said, fmt.Sprintf("time limit %s, was %s", job.Duration(l/sched.Second), job.Duration(req.Limit/sched.Second)))
		req.Limit, req.MinRun = l, min(req.MinRun, l)
	}
	if n := e.Change.Name; n != "" && n != name {
		said = append(said, "name "+n)
		name = n
	}
	if said == nil {
		return Outcome{Message: "has that already"}
	}
	text := strings.Join(said, "; ")
	j = s.jobs.change(j, fmt.Sprintf("%s by %s", text, e.By), func(j *state.Job) { j.Request, j.Name = s.intern.request(req), name })
	switch {
	case j.State == job.Queued:
		s.depends.eligible(j)
	case j.State.Active() && j.Tasks == nil:
		s.queue.relimit(j)
		s.nodes.wakeAll(j)
	}
	for _, t := range s.arrays.children(j.Number) { // those that are made later ask what the array asks
		if !t.State.Final() && t.Ending == nil && (t.State.Pending() || e.Change.Priority == nil) {
			e.update(s, t)
		}
	}
	return Outcome{Message: "has " + text}
}

// mayUpdate says why a job cannot be changed so.
func (e Act) mayUpdate(s *step, j *state.Job) *state.Refusal {
	c, conflict := e.Change, func(format string, args ...any) *state.Refusal {
		return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf(format, args...)}
	}
	if j.State.Final() || j.Ending != nil {
		return conflict("job %d is %s and cannot be changed", j.Number, stateText(j))
	}
	if c.Priority != nil {
		switch p := *c.Priority; {
		case !j.State.Pending():
			return conflict("job %d is %s: only a waiting job has a priority", j.Number, stateText(j))
		case max(p, -p) > job.MaxPriority:
			return conflict("priority %d: use -%d to %d", p, job.MaxPriority, job.MaxPriority)
		case p > j.Request.Priority && !e.Operator:
			return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("job %d has priority %d: only an operator may raise it", j.Number, j.Request.Priority), Hint: "use a lower number"}
		}
	}
	switch l := c.Limit; {
	case l < 0:
		return conflict("a time limit of %d ms: use a second at least", l)
	case l > j.Request.Limit && !e.Operator:
		return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("job %d has a time limit of %s: only an operator may raise it", j.Number, job.Duration(j.Request.Limit/sched.Second)), Hint: "use a shorter one"}
	case l > 0 && !j.State.Pending() && j.Request.LimitScope == job.LimitJob:
		return conflict("the time limit of job %d counts over all its tries and cannot be changed once it has run", j.Number)
	}
	if c.Name != "" && !job.ValidName(c.Name) {
		return conflict("%q is no name for a job", c.Name)
	}
	return nil
}
