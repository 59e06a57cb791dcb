package control

import (
	"fmt"

	"gbatch/internal/control/need"
	"gbatch/internal/control/quota"
	"gbatch/internal/state"
	"gbatch/sched"
)

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

// refuseNever refuses a job that is beyond a limit of its user, project or qos by
// itself, or that no node, free or not, could ever hold. Before any node has reported
// nothing can be said of these.
func (e Submit) refuseNever(s *step, probe sched.Job) *state.Refusal {
	if why, beyond := s.queue.sched.Beyond(probe); beyond {
		return &state.Refusal{Code: state.Unsatisfiable, Path: "request.resources", Message: why.Text + ": it could never start",
			Hint: "ask for less, or ask an operator, who sets the limits"}
	}
	if s.nodes.list.Len() == 0 || s.queue.sched.Possible(probe.Shape) {
		return nil
	}
	r := &state.Refusal{Code: state.Unsatisfiable, Path: "request.resources", Message: "no node here can ever hold this job"}
	if len(e.Spec.Capabilities()) > 0 {
		r.Hint = "a capability is had on nodes only whose gnoded.yaml has it in allowCapabilities"
	}
	if name := e.Spec.Runtime(); name != "" {
		r.Hint = need.RuntimesHint(&s.nodes.list, name)
	}
	if at := probe.Shape.Storage; len(at) > 0 && !s.queue.sched.Possible(&sched.Shape{Storage: at}) {
		r.Path, r.Hint = "request.docker.storage", "mount what there is, or ask an operator: storage is named in gnoded.yaml of each node"
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
	return t.owned.Refuse(t.out.Now, user, t.cfg.limitsOf(user), more)
}

// stored notes what a user has stored by making a job or acting on one.
func (t *jobs) stored(user string, more quota.Amount) {
	if keep, due := t.owned.Store(t.out.Now, user, t.cfg.limitsOf(user), more); due {
		t.out.Record(state.Record{Kind: state.KindStored, Name: user}, &keep)
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
