// Package amend is what people may change of a job after it was submitted: its
// name, its time limit, what is added to its priority. It says why a change cannot
// be, and what the job asks for with it; it changes no job.
package amend

import (
	"fmt"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Change is what a job shall have instead of what its document says. What is
// empty stays.
type Change struct {
	Name     string
	Limit    sched.Time // run time
	Priority *int       // what is added to it
}

// To is the job's request and name with the change, and what that is in words;
// empty: it has that already.
func (c Change) To(j *state.Job) (req state.Request, name, said string) {
	req, name = *j.Request, j.Name
	var parts []string
	if p := c.Priority; p != nil && *p != req.Priority {
		parts = append(parts, fmt.Sprintf("priority %d, was %d", *p, req.Priority))
		req.Priority = *p
	}
	if l := c.Limit; l > 0 && l != req.Limit {
		parts = append(parts, fmt.Sprintf("time limit %s, was %s", job.Duration(l/sched.Second), job.Duration(req.Limit/sched.Second)))
		req.Limit, req.MinRun = l, min(req.MinRun, l)
	}
	if n := c.Name; n != "" && n != name {
		parts = append(parts, "name "+n)
		name = n
	}
	return req, name, strings.Join(parts, "; ")
}

// Refuse says why a job cannot be changed so. Users
// may only lower what others would have less by.
func (c Change) Refuse(j *state.Job, operator bool) *state.Refusal {
	conflict := func(format string, args ...any) *state.Refusal {
		return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf(format, args...)}
	}
	if j.State.Final() || j.Ending != nil {
		return conflict("job %d is %s and cannot be changed", j.Number, j.Words())
	}
	if c.Priority != nil {
		switch p := *c.Priority; {
		case !j.State.Pending():
			return conflict("job %d is %s: only a waiting job has a priority", j.Number, j.Words())
		case max(p, -p) > job.MaxPriority:
			return conflict("priority %d: use -%d to %d", p, job.MaxPriority, job.MaxPriority)
		case p > j.Request.Priority && !operator:
			return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("job %d has priority %d: only an operator may raise it", j.Number, j.Request.Priority), Hint: "use a lower number"}
		}
	}
	switch l := c.Limit; {
	case l < 0:
		return conflict("a time limit of %d ms: use a second at least", l)
	case l > j.Request.Limit && !operator:
		return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("job %d has a time limit of %s: only an operator may raise it", j.Number, job.Duration(j.Request.Limit/sched.Second)), Hint: "use a shorter one"}
	case l > 0 && !j.State.Pending() && j.Request.LimitScope == job.LimitJob:
		return conflict("the time limit of job %d counts over all its tries and cannot be changed once it has run", j.Number)
	}
	if c.Name != "" && !job.ValidName(c.Name) {
		return conflict("%q is no name for a job", c.Name)
	}
	return nil
}
