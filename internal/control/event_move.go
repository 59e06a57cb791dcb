package control

import (
	"fmt"

	"gbatch/internal/control/amend"
	"gbatch/internal/control/picture"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Move is what the site's rules look at where a job is to be in another project or
// class of service, as when it is submitted.
type Move struct {
	Documents map[job.Number]*job.Spec // of the jobs
	Stranger  bool                     // the project has members and By is none of them
	Closed    []string                 // partitions that are for other users than By
}

// reassign says why a job that waits cannot be in another project or class of service, and
// puts it where its jobs run. A task follows its array.
func (e Act) reassign(s *step, j *state.Job, next *amend.Amended) *state.Refusal {
	if e.By != j.Owner.User && !e.Operator {
		return &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("job %d belongs to %s, who alone may have it in another project or qos, beside operators", j.Number, j.Owner.User)}
	}
	if p := s.jobs.get(j.Parent); p != nil {
		if *p.Owner != next.Owner {
			return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is a task of job %d", j.Number, p.Number), Hint: fmt.Sprintf("change job %d: its tasks go along", p.Number)}
		}
		req := *next.Request
		req.Shape, next.Request = p.Request.Shape, &req
		return nil
	}
	doc := e.Move.Documents[j.Number]
	if doc == nil {
		return &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d has no document to compare with the rules of project %s", j.Number, next.Owner.Project)}
	}
	as := Submit{User: j.Owner.User, Project: next.Owner.Project, Operator: e.Operator, Stranger: e.Move.Stranger, Closed: e.Move.Closed, Spec: next.Spec(doc)}
	rules := s.cfg.rules()
	rules.MaxRun = 0 // it has its limit
	if r := rules.Refuse(as.who(), as.Spec); r != nil {
		return r
	}
	asked, _, r := as.request(s)
	if r != nil {
		return r
	}
	req, shape := *next.Request, *next.Request.Shape
	shape.Cluster, shape.Partitions = asked.Shape.Cluster, asked.Shape.Partitions
	req.Shape, next.Request = s.intern.Shape(&shape), &req
	probe := picture.Job(j.Number, &next.Owner, next.Request, j.Submitted)
	old := sched.Outside{Project: j.Owner.Project, User: j.Owner.User, QOS: j.Owner.QOS, Jobs: -j.Waiting()} // it is counted there
	if why, ok := s.queue.sched.MayQueue(probe, j.Waiting(), append(s.jobs.outside(), old)); !ok {
		return &state.Refusal{Code: state.OverLimit, Message: why.Text, Hint: "change it when some of them have run"}
	}
	if r := as.refuseReserved(s); r != nil {
		return r
	}
	return as.refuseNever(s, probe)
}
