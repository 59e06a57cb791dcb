package control

import (
	"fmt"
	"slices"

	"gbatch/internal/control/need"
	"gbatch/internal/control/quota"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// admit refuses what the site's rules do not allow.
func (e Submit) admit(cfg *Config) *state.Refusal {
	p, ok := cfg.Projects[e.Project]
	if !ok {
		return &state.Refusal{Code: state.NotFound, Path: "project", Message: fmt.Sprintf("there is no project %q", e.Project),
			Hint: "projects here: " + joinNames(cfg.Projects)}
	}
	if e.Stranger && !e.Operator {
		return &state.Refusal{Code: state.Denied, Path: "project", Message: fmt.Sprintf("user %s is not a member of project %s", e.User, e.Project)}
	}
	if cl := e.Spec.Request.Resources.ClusterID; len(p.Clusters) > 0 && !slices.Contains(p.Clusters, cl) && (cl != 0 || len(p.Clusters) > 1) && !e.Operator {
		return &state.Refusal{Code: state.Denied, Path: "request.resources.clusterId", Message: fmt.Sprintf("project %s may use clusters %s", e.Project, joinInts(p.Clusters)),
			Hint: "name one of them"}
	}
	if q := qosOf(e.Spec); q != "" {
		if _, ok := cfg.Policy.QOS[q]; !ok {
			return &state.Refusal{Code: state.NotFound, Path: "gbatch.qos", Message: fmt.Sprintf("there is no qos %q", q), Hint: "qos here: " + joinNames(cfg.Policy.QOS)}
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
	for _, want := range e.Spec.Capabilities() {
		if !slices.Contains(p.Capabilities, want) {
			return &state.Refusal{Code: state.Denied, Path: "gbatch.capabilities", Message: fmt.Sprintf("jobs of project %s may not have the capability %s", e.Project, want),
				Hint: "remove it, or ask an administrator, who can allow it: capabilities of the project, and allowCapabilities in gnoded.yaml of a node"}
		}
	}
	if e.Spec.Network() == job.NetworkHost && !p.HostNetwork {
		return &state.Refusal{Code: state.Denied, Path: "gbatch.network", Message: fmt.Sprintf("jobs of project %s may not use the nodes' network", e.Project),
			Hint: "remove it: the job then has a network of its own, which the ranks of a job on several nodes share; or ask an administrator for hostNetwork, which can be allowed to the project"}
	}
	if p.Runtime != "" && e.Spec.Runtime() != p.Runtime { // the site's tables have put it there otherwise
		return &state.Refusal{Code: state.Denied, Path: "gbatch.runtime", Message: fmt.Sprintf("jobs of project %s are run by the runtime %s", e.Project, p.Runtime)}
	}
	if d := sched.Time(e.Spec.Request.Scheduling.MaxDuration) * 1000; cfg.MaxRun > 0 && d > cfg.MaxRun {
		return &state.Refusal{Code: state.Unsatisfiable, Path: "request.scheduling.maxDuration",
			Message: fmt.Sprintf("%s is longer than the site allows, %s", job.Duration(d/1000), job.Duration(cfg.MaxRun/1000))}
	}
	return nil
}

// refuseReserved refuses a job that names a reservation which is for others: it
// would wait for what it never gets.
func (e Submit) refuseReserved(s *step) *state.Refusal {
	for i, name := range e.Spec.Request.Scheduling.ReservationIDs {
		for _, w := range s.queue.windows {
			if w.Named(name) && !w.Admits(e.Project, e.User, []string{name}) {
				return &state.Refusal{Code: state.Denied, Path: fmt.Sprintf("request.scheduling.reservationIds[%d]", i),
					Message: fmt.Sprintf("reservation %s is not for project %s or user %s", name, e.Project, e.User),
					Hint:    "submit to a project that it is for, or ask an operator"}
			}
		}
	}
	return nil
}

// refuseNever refuses a job that no node, free or not, could ever hold. Before
// any node has reported nothing can be said, and the job is taken.
func (e Submit) refuseNever(s *step, probe sched.Job) *state.Refusal {
	if len(s.nodes.list) == 0 || s.queue.sched.Possible(probe.Shape) {
		return nil
	}
	r := &state.Refusal{Code: state.Unsatisfiable, Path: "request.resources", Message: "no node here can ever hold this job"}
	if len(e.Spec.Capabilities()) > 0 {
		r.Hint = "a capability is had on nodes only whose gnoded.yaml has it in allowCapabilities"
	}
	if name := e.Spec.Runtime(); name != "" {
		r.Hint = need.RuntimesHint(s.nodes.list, name)
	}
	est, err := sched.WouldStart(s.queue.input(s.now), probe)
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

// tooMany refuses what would make the queue longer than it may be: the site's,
// and that of whoever submits. Each task counts, whether it is a job yet or not.
func (t *jobs) tooMany(probe sched.Job, more int) *state.Refusal {
	if t.waiting+more > t.cfg.MaxQueued {
		return &state.Refusal{Code: state.OverLimit, Message: fmt.Sprintf("the queue is full: %d jobs and tasks wait, and the site's limit is %d", t.waiting, t.cfg.MaxQueued),
			Hint: "submit again when some have run"}
	}
	if why, ok := t.queue.sched.MayQueue(probe, more, t.outside()); !ok {
		return &state.Refusal{Code: state.OverLimit, Message: why.Text, Hint: "submit again when some of them have run"}
	}
	return nil
}

// tooMuch refuses what is more than one user may have.
func (t *jobs) tooMuch(user string, more quota.Amount) *state.Refusal {
	return t.owned.Refuse(t.out.now, user, t.cfg.limitsOf(user), more)
}

// stored notes what a user has stored by making a job or acting on one.
func (t *jobs) stored(user string, more quota.Amount) {
	if keep, due := t.owned.Store(t.out.now, user, t.cfg.limitsOf(user), more); due {
		t.out.record(state.Record{Kind: state.KindStored, Name: user}, &keep)
	}
}

// outside is what waits and is not in the scheduler's queue, by whose it is: tasks
// that are no jobs yet, and jobs on hold, which need only be released.
func (t *jobs) outside() []sched.Outside {
	var out []sched.Outside
	for o, n := range t.owned.Held { // they are added up: order does not matter
		out = append(out, sched.Outside{Project: o.Project, User: o.User, QOS: o.QOS, Jobs: n})
	}
	for n := range t.arrays.Numbers { // added up, too
		if p := t.get(n); p.Tasks.Counts[state.TaskPending] > 0 {
			out = append(out, sched.Outside{Project: p.Owner.Project, User: p.Owner.User, QOS: p.Owner.QOS, Jobs: p.Tasks.Counts[state.TaskPending]})
		}
	}
	return out
}
