package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/control/amend"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
	"gbatch/internal/job/times"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Actions does things with jobs that are there.
type Actions struct {
	Loop   *loop.Loop
	Jobs   *jobstore.Reader
	Rights *access.Rights
}

type actInput struct {
	Action string `path:"action" enum:"cancel,hold,uhold,release,pause,resume,requeue,requeuehold,halt,signal,update"`
	Body   api.ActionRequest
}

// actChunk is how many jobs one event touches, so that a mass cancel never
// holds the loop up.
const actChunk = 500

// Act does one thing with the jobs that are named, or that a filter selects.
func (s *Actions) Act(ctx context.Context, in *actInput) (*api.ActionResponse, error) {
	id := access.Caller(ctx)
	out, targets, err := s.targets(id, in)
	if err != nil {
		return nil, err
	}
	s.noteDenied(ctx, in.Action, out.Results)
	if in.Body.Count {
		return &out, nil
	}
	if err := s.actOnSteps(ctx, id, in, &out); err != nil {
		return nil, err
	}
	if p := changeOf(in).Project; p != "" && !s.Rights.SeesProject(id, p) { // the same of one that is not there
		return nil, api.Errorf(api.CodeDenied, "there is no project %q for %s to put jobs into", p, id.User)
	}
	order := control.Act{Action: control.Action(in.Action), By: id.User, Operator: id.Operator(), Signal: strings.TrimPrefix(strings.ToUpper(in.Body.Signal), "SIG"), Change: changeOf(in)}
	whole := targets[:0:0]
	for _, t := range targets {
		if t.tasks == nil {
			whole = append(whole, t)
			continue
		}
		ev := control.ActTasks{Act: order, Parent: t.number, Indexes: t.tasks}
		result, err := loop.Do(ctx, s.Loop, ev)
		if err != nil {
			return nil, err
		}
		takeResult(&out.Results[t.result], result)
	}
	most := actChunk
	if order.Change.Moves() {
		most = moveChunk
	}
	for part := range slices.Chunk(whole, most) {
		ev := order
		for _, t := range part {
			ev.Numbers = append(ev.Numbers, t.number)
		}
		if ev.Move, err = s.move(id, ev); err != nil {
			return nil, err
		}
		results, err := loop.Do(ctx, s.Loop, ev)
		if err != nil {
			return nil, err
		}
		for i, o := range results {
			takeResult(&out.Results[part[i].result], o)
		}
	}
	return &out, nil
}

// changeOf is what an update is to change.
func changeOf(in *actInput) amend.Change {
	if c := in.Body.Change; c != nil {
		out := amend.Change{Name: c.Name, Limit: seconds(c.LimitS), Priority: c.Priority, Project: c.Project, QOS: c.QOS, Comment: c.Comment}
		if c.LimitMinS != nil {
			least := seconds(*c.LimitMinS)
			out.LimitMin = &least
		}
		return out
	}
	return amend.Change{Priority: &in.Body.Priority}
}

// seconds is a length of time that a caller gave; -1 s for all that is negative, and no
// more than any job may have.
func seconds(n int64) sched.Time {
	return sched.Time(min(max(n, -1), int64(times.MaxDuration)+1)) * sched.Second
}

// moveChunk is how many jobs with their documents one event puts into another project
// or class of service.
const moveChunk = 20

// move is what the controller is to know where jobs shall be in another project or
// class of service.
func (s *Actions) move(id access.Identity, ev control.Act) (control.Move, error) {
	if !ev.Change.Moves() {
		return control.Move{}, nil
	}
	m := control.Move{Documents: map[job.Number]*job.Spec{}, Stranger: s.Rights.Stranger(id, ev.Change.Project), Closed: s.Rights.Closed(id)}
	v := s.Loop.View()
	for _, n := range ev.Numbers {
		if j := v.Job(n); j != nil {
			doc, err := s.Jobs.Document(j)
			if err != nil {
				return m, err
			}
			m.Documents[n] = doc
		}
	}
	return m, nil
}

// noteDenied notes for the audit log which jobs the caller named and may not touch.
func (s *Actions) noteDenied(ctx context.Context, action string, results []api.ActionResult) {
	var ids []string
	for _, r := range results {
		if r.Error != nil && r.Error.Code == api.CodeDenied {
			ids = append(ids, r.ID)
		}
	}
	if n := loop.NoteOf(ctx); n != nil && len(ids) > 0 {
		s.Loop.Refused(n.About("jobs "+strings.Join(ids, " "), action).AuditEntry, "they belong to others")
	}
}

func takeResult(r *api.ActionResult, o control.Result) {
	r.Before, r.After, r.Message = o.Before, o.After, o.Message
	if o.Refusal != nil {
		r.Error = wire.Refused(o.Refusal)
	}
}

// target is a job to act on and where its result goes.
type target struct {
	number job.Number
	result int
	tasks  indexes.Set // of an array; empty: all of the job
}

// targets resolves what an action names. Jobs that the caller may not touch
// are errors when named, and left out when matched by a filter.
func (s *Actions) targets(id access.Identity, in *actInput) (api.ActionResponse, []target, error) {
	var out api.ActionResponse
	var ts []target
	q := in.Body
	v := s.Loop.View()
	add := func(text string, j *state.Job) {
		ts = append(ts, target{number: j.Number, result: len(out.Results)})
		out.Results = append(out.Results, api.ActionResult{ID: text, Number: j.Number})
	}
	for _, text := range q.IDs {
		if _, _, ok := splitStep(text); ok {
			out.Results = append(out.Results, api.ActionResult{ID: text})
			continue // see actOnSteps
		}
		if n, set, ok := state.ParseTask(text); ok {
			t, result := s.taskTarget(id, text, n, set)
			if t != nil {
				t.result = len(out.Results)
				ts = append(ts, *t)
			}
			out.Results = append(out.Results, result)
			continue
		}
		j, refusal := v.Find(text)
		switch {
		case refusal != nil:
			out.Results = append(out.Results, s.absent(id, in.Action, text, refusal))
		case !s.Rights.MayTouch(id, j.Owner):
			out.Results = append(out.Results, api.ActionResult{ID: text, Number: j.Number, Error: api.Errorf(api.CodeDenied, "job %d belongs to %s", j.Number, j.Owner.User)})
		default:
			add(text, j)
		}
	}
	if len(q.IDs) == 0 {
		if q.User == "" && q.Project == "" && q.State == "" && q.Name == "" && q.Cluster == 0 && q.Partition == "" {
			return out, nil, api.Errorf(api.CodeBadRequest, "name jobs, or give at least one filter")
		}
		f := filter{User: q.User, Project: q.Project, State: q.State, Name: q.Name, Cluster: q.Cluster, Place: q.Partition}
		if err := f.check(); err != nil {
			return out, nil, err
		}
		sums := v.Summaries()
		for j := range v.Live() {
			if f.lists(j, sums, func(*state.Owner) bool { return false }) && s.Rights.MayTouch(id, j.Owner) {
				add(j.ID(), j)
				if j.Tasks != nil && f.State != "" { // those that wait; the others match by themselves
					ts[len(ts)-1].tasks = sums[j.Number].Waiting
				}
			}
		}
	}
	out.Matched = len(ts)
	return out, ts, nil
}

// absent answers for an id that is not in the table: a job in history has
// ended, and ending it again is done.
func (s *Actions) absent(id access.Identity, action, text string, refusal *state.Refusal) api.ActionResult {
	j, err := s.Jobs.Find(text)
	if err == nil && j != nil && s.Rights.MayTouch(id, j.Owner) && action != "cancel" {
		return api.ActionResult{ID: text, Number: j.Number, Before: j.State, After: j.State, Error: api.Errorf(api.CodeConflict, "job %d is %s: it has ended", j.Number, j.State).
			WithHint(fmt.Sprintf("submit it as a new one; gqueue show --json %d has its document", j.Number))}
	}
	if err == nil && j != nil && s.Rights.MayTouch(id, j.Owner) {
		return api.ActionResult{ID: text, Number: j.Number, Before: j.State, After: j.State, Message: "already " + string(j.State)}
	}
	return api.ActionResult{ID: text, Error: wire.Refused(refusal)}
}

// taskTarget resolves tasks that an action names, as 123_7 and 123_[3-9]; nil
// with the answer if there is nothing to do.
func (s *Actions) taskTarget(id access.Identity, text string, n job.Number, set indexes.Set) (*target, api.ActionResult) {
	p := s.Loop.View().Job(n)
	if p == nil {
		var err error
		if p, err = s.Jobs.Past(n); err != nil || p == nil {
			return nil, api.ActionResult{ID: text, Error: api.Errorf(api.CodeNotFound, "there is no job %d", n)}
		}
	}
	out := api.ActionResult{ID: text, Number: n}
	switch {
	case !s.Rights.MayTouch(id, p.Owner):
		out.Error = api.Errorf(api.CodeDenied, "job %d belongs to %s", n, p.Owner.User)
	case p.State.Final():
		out.Before, out.After, out.Message = p.State, p.State, "its array is already "+string(p.State)
	default:
		return &target{number: n, tasks: set}, out
	}
	return nil, out
}
