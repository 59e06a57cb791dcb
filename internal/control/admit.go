package control

import (
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// admit refuses what the site's rules do not allow.
func (e Submit) admit(c *step) *state.Refusal {
	p, ok := c.cfg.Projects[e.Project]
	if !ok {
		return &state.Refusal{Code: state.NotFound, Path: "project", Message: fmt.Sprintf("there is no project %q", e.Project),
			Hint: "projects here: " + joinNames(c.cfg.Projects)}
	}
	if e.Stranger && !e.Operator {
		return &state.Refusal{Code: state.Denied, Path: "project", Message: fmt.Sprintf("user %s is not a member of project %s", e.User, e.Project)}
	}
	if cl := e.Spec.Request.Resources.ClusterID; len(p.Clusters) > 0 && !slices.Contains(p.Clusters, cl) && (cl != 0 || len(p.Clusters) > 1) && !e.Operator {
		return &state.Refusal{Code: state.Denied, Path: "request.resources.clusterId", Message: fmt.Sprintf("project %s may use clusters %s", e.Project, joinInts(p.Clusters)),
			Hint: "name one of them"}
	}
	if q := qosOf(e.Spec); q != "" {
		if _, ok := c.cfg.Policy.QOS[q]; !ok {
			return &state.Refusal{Code: state.NotFound, Path: "gbatch.qos", Message: fmt.Sprintf("there is no qos %q", q), Hint: "qos here: " + joinNames(c.cfg.Policy.QOS)}
		}
	}
	if g := e.Spec.Gbatch; g != nil && g.Priority > 0 && !e.Operator {
		return &state.Refusal{Code: state.Denied, Path: "gbatch.priority", Message: "only an operator may raise a job's priority",
			Hint: "use 0 or a negative number"}
	}
	if e.Spec.Privileged() && !p.Privileged {
		return &state.Refusal{Code: state.Denied, Path: "gbatch.privileged", Message: fmt.Sprintf("jobs of project %s may not be privileged", e.Project),
			Hint: "remove it, or ask an administrator, who can allow it to the project"}
	}
	if d := sched.Time(e.Spec.Request.Scheduling.MaxDuration) * 1000; c.cfg.MaxRun > 0 && d > c.cfg.MaxRun {
		return &state.Refusal{Code: state.Unsatisfiable, Path: "request.scheduling.maxDuration",
			Message: fmt.Sprintf("%s is longer than the site allows, %s", job.Duration(d/1000), job.Duration(c.cfg.MaxRun/1000))}
	}
	return nil
}

// refuseNever refuses a job that no node, free or not, could ever hold. Before
// any node has reported nothing can be said, and the job is taken.
func (e Submit) refuseNever(c *step, probe sched.Job) *state.Refusal {
	if len(c.nodes.list) == 0 || c.queue.sched.Possible(probe.Shape) {
		return nil
	}
	r := &state.Refusal{Code: state.Unsatisfiable, Path: "request.resources", Message: "no node here can ever hold this job"}
	est, err := sched.WouldStart(c.input(c.now), probe)
	if err != nil {
		r.Message = err.Error()
		return r
	}
	for _, why := range est.Reasons {
		if why.Code == sched.CodeNever {
			r.Message = why.Text
		}
	}
	return r
}
