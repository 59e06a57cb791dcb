// Package amend is what people may change of a job after it was submitted: its
// name, its time limit, what is added to its priority, its project and class of
// service. It says why a change cannot
// be, and what the job asks for with it; it changes no job.
package amend

import (
	"cmp"
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
	Limit    sched.Time  // run time
	LimitMin *sched.Time // least run time that will do, where it starts sooner by it; 0: no other than Limit
	Priority *int        // what is added to it
	Project  string
	QOS      string
	Comment  *string // empty: none
}

// Moves says whether the job is to be in another project or class of service.
func (c Change) Moves() bool { return c.Project+c.QOS != "" }

// Stays is the change without what only a waiting job can have.
func (c Change) Stays() Change {
	c.Project, c.QOS, c.LimitMin = "", "", nil
	return c
}

// Amended is what a job is with a change.
type Amended struct {
	Request *state.Request
	Attempt *state.Attempt // nil: none
	Name    string
	Owner   state.Owner
}

// To is the job with the change, and what that is in words; empty: it has that
// already.
func (c Change) To(j *state.Job) (next Amended, said string) {
	next = Amended{Request: j.Request, Attempt: j.Attempt, Name: j.Name, Owner: *j.Owner}
	var parts []string
	if l, was := c.Limit, j.LimitNow(); l > 0 && l != was {
		parts = append(parts, fmt.Sprintf("time limit %s, was %s", job.Duration(l/sched.Second), job.Duration(was/sched.Second)))
		to := j.WithLimit(l)
		next.Request, next.Attempt = to.Request, to.Attempt
	}
	if m := c.LimitMin; m != nil {
		req := *next.Request
		if req.LimitMin = *m; req.LimitMin >= req.Limit {
			req.LimitMin = 0
		}
		if was := j.Request.LimitMin; req.LimitMin != was {
			parts = append(parts, fmt.Sprintf("least time limit %s, was %s", least(req.LimitMin), least(was)))
			next.Request = &req
		}
	}
	if p := c.Priority; p != nil && *p != j.Request.Priority {
		parts = append(parts, fmt.Sprintf("priority %d, was %d", *p, j.Request.Priority))
		req := *next.Request
		req.Priority, next.Request = *p, &req
	}
	if text := c.Comment; text != nil && (j.Request.Comment == nil || *text != *j.Request.Comment) {
		parts = append(parts, fmt.Sprintf("comment %q", *text))
		req := *next.Request
		req.Comment, next.Request = text, &req
	}
	if n := c.Name; n != "" && n != next.Name {
		parts = append(parts, "name "+n)
		next.Name = n
	}
	if p := c.Project; p != "" && p != next.Owner.Project {
		parts = append(parts, fmt.Sprintf("project %s, was %s", p, next.Owner.Project))
		next.Owner.Project = p
	}
	if q := c.QOS; q != "" && q != next.Owner.QOS {
		parts = append(parts, fmt.Sprintf("qos %s, was %s", q, cmp.Or(next.Owner.QOS, "the default")))
		next.Owner.QOS = q
	}
	return next, strings.Join(parts, "; ")
}

// least is a least time limit in words.
func least(l sched.Time) string {
	if l == 0 {
		return "none"
	}
	return job.Duration(l / sched.Second).String()
}

// Spec is a job's document as if it had been submitted with what the job is to be
// now, for the site's rules to look at.
func (a Amended) Spec(doc *job.Spec) *job.Spec {
	out := *doc
	out.Request.Scheduling.MaxDuration = job.Duration(a.Request.Limit / sched.Second)
	var g job.Gbatch
	if doc.Gbatch != nil {
		g = *doc.Gbatch
	}
	g.QOS, g.Priority = a.Owner.QOS, 0 // who may raise that was asked when it was
	out.Gbatch = &g
	return &out
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
	switch {
	case c.Moves() && !j.State.Pending():
		return conflict("job %d is %s: only a waiting job can have another project or qos", j.Number, j.Words())
	case c.Project != "" && c.Project != j.Owner.Project && (j.Attempt != nil || j.Restart != nil):
		r := conflict("job %d has run for project %s, which pays for that", j.Number, j.Owner.Project)
		r.Hint = fmt.Sprintf("cancel it and submit it to project %s", c.Project)
		return r
	}
	switch l := c.Limit; {
	case l < 0:
		return conflict("a time limit of %d ms: use a second at least", l)
	case l > j.LimitNow() && !operator:
		return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("job %d has a time limit of %s: only an operator may raise it", j.Number, job.Duration(j.LimitNow()/sched.Second)), Hint: "use a shorter one"}
	case l > 0 && (j.First > 0 || !j.State.Pending()) && j.Request.LimitScope == job.LimitJob:
		r := conflict("the time limit of job %d counts over all its tries and cannot be changed once it has run", j.Number)
		r.Hint = "cancel it, and submit it anew with the limit that it needs"
		return r
	}
	if r := c.refuseLimitMin(j, conflict); r != nil {
		return r
	}
	if c.Name != "" && !job.ValidName(c.Name) {
		return conflict("%q is no name for a job", c.Name)
	}
	if c.Comment != nil && !job.ValidComment(*c.Comment) {
		return conflict("a comment of %d bytes: use at most %d characters, of text", len(*c.Comment), job.MaxComment)
	}
	return nil
}

// refuseLimitMin says why a job cannot have the least time limit of a change. Nobody has
// less by it: with a shorter limit a job delays nobody who goes before it.
func (c Change) refuseLimitMin(j *state.Job, conflict func(string, ...any) *state.Refusal) *state.Refusal {
	if c.LimitMin == nil {
		return nil
	}
	limit := cmp.Or(c.Limit, j.Request.Limit)
	switch l := *c.LimitMin; {
	case !j.State.Pending():
		r := conflict("job %d is %s: its time limit is granted, and only a waiting job has a least one", j.Number, j.Words())
		r.Hint = "change the time limit itself"
		return r
	case l < 0:
		return conflict("a least time limit of %d ms: use a second at least, or 0 for none", l)
	case l > limit:
		r := conflict("the least time limit of job %d would be %s, longer than its time limit of %s", j.Number, job.Duration(l/sched.Second), job.Duration(limit/sched.Second))
		r.Hint = "make it shorter"
		return r
	case l > 0 && j.Request.LimitScope == job.LimitJob:
		return conflict("the time limit of job %d counts over all its tries, and it cannot have a least one", j.Number)
	}
	return nil
}
