package ctld

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

type submitInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"makes the submission safe to repeat"`
	Body api.SubmitRequest
}

// keySpace is where the UUIDs live that are made of idempotency keys.
var keySpace = uuid.MustParse("5f2a9c1e-7d0b-4b57-9a39-62b1c5f0d3a4")

func (s *Server) submit(ctx context.Context, in *submitInput) (*body[api.SubmitResponse], error) {
	id := caller(ctx)
	sub, err := job.Parse(in.Body.Job)
	if err != nil {
		return nil, s.fail(err)
	}
	if in.Body.Interactive {
		if err := sub.Spec.MakeInteractive(); err != nil {
			return nil, s.fail(err)
		}
	}
	if err := s.resolveTables(&sub.Spec); err != nil {
		return nil, s.fail(err)
	}
	sub.Notes = append(sub.Notes, dropForeign(s.loop.view.Load(), &sub.Spec)...)
	if err := setDependencies(&sub.Spec, in.Body.Dependency); err != nil {
		return nil, s.fail(err)
	}
	ev, err := s.submitEvent(id, in, &sub)
	if err != nil {
		return nil, s.fail(err)
	}
	out := api.SubmitResponse{Project: ev.Project}
	for _, n := range sub.Notes {
		out.Notes = append(out.Notes, api.Note{Path: n.Path, Message: n.Message})
	}
	out.Notes = append(out.Notes, s.siteNotes(&sub.Spec)...)
	if done, err := s.repeated(in, ev, &out); done || err != nil {
		return &body[api.SubmitResponse]{out}, err
	}
	a, err := s.doSubmit(ctx, ev)
	if err != nil {
		return nil, s.fail(err)
	}
	out.Notes = append(out.Notes, budgetNote(a.Budget)...)
	if in.Body.DryRun {
		return s.dryRun(ctx, out, &sub, ev, a)
	}
	if a.Repeated {
		if err := s.sameDocument(a.Number, ev.Document); err != nil {
			return nil, err
		}
	}
	out.Number, out.State, out.Repeated, out.UUID = a.Number, a.State, a.Repeated, uuid.UUID(ev.UUID).String()
	return &body[api.SubmitResponse]{out}, nil
}

func (s *Server) submitEvent(id identity, in *submitInput, sub *job.Submission) (control.Submit, error) {
	ev := control.Submit{User: id.user, Operator: id.operator(), Spec: &sub.Spec, Hold: in.Body.Hold, DryRun: in.Body.DryRun}
	ev.Project = firstOf(in.Body.Project, sub.Spec.ProjectName(), s.cfg().DefaultProject)
	if ev.Project == "" {
		return ev, &api.Error{Status: 422, Code: api.CodeInvalidJob, Message: "the job names no project, and this site has no default",
			Hint: "use --project; projects here: " + strings.Join(s.projectNames(), ", ")}
	}
	ev.Stranger = s.stranger(id, ev.Project)
	ev.UUID = uuid.New()
	if in.Key != "" {
		ev.UUID = uuid.NewSHA1(keySpace, []byte(id.user+"\x00"+in.Key))
	}
	var err error
	if ev.Document, err = json.Marshal(sub.Spec); err != nil {
		return ev, fmt.Errorf("encode job: %w", err)
	}
	err = s.sealSubmission(&ev, sub)
	return ev, err
}

// repeated answers a key whose job has long ended and left the table.
func (s *Server) repeated(in *submitInput, ev control.Submit, out *api.SubmitResponse) (bool, error) {
	if in.Key == "" || in.Body.DryRun {
		return false, nil
	}
	n, ok, err := s.store.NumberOf(ev.UUID)
	if err != nil || !ok {
		return false, err
	}
	if err := s.sameDocument(n, ev.Document); err != nil {
		return true, err
	}
	j, err := s.history(n)
	if err != nil || j == nil {
		return true, err
	}
	out.Number, out.UUID, out.State, out.Repeated = n, uuid.UUID(ev.UUID).String(), j.State, true
	return true, nil
}

// sameDocument refuses a key that was used for another job.
func (s *Server) sameDocument(n job.Number, doc []byte) error {
	old, ok, err := s.store.Get(state.Record{Kind: state.KindSpec, Job: n})
	if err != nil {
		return s.fail(err)
	}
	if ok && string(old) != string(doc) {
		return &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("this idempotency key was used for job %d, which is another document", n),
			Hint: "use a new key for a new job"}
	}
	return nil
}

func (s *Server) dryRun(ctx context.Context, out api.SubmitResponse, sub *job.Submission, ev control.Submit, a control.Submitted) (*body[api.SubmitResponse], error) {
	spec := sub.Spec
	out.Effective = &spec
	var failed error
	err := s.loop.ask(ctx, func(c *control.Controller, now sched.Time) {
		est, err := c.WouldStart(now, state.Owner{User: ev.User, Project: ev.Project, QOS: a.QOS}, a.Request)
		out.Estimate, failed = estimateToAPI(now, est), err
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, s.fail(err)
	}
	return &body[api.SubmitResponse]{out}, nil
}

type actInput struct {
	Action string `path:"action" enum:"cancel,hold,release,pause,resume,requeue,halt,signal,update"`
	Body   api.ActionRequest
}

// actChunk is how many jobs one event touches, so that a mass cancel never
// holds the loop up.
const actChunk = 500

func (s *Server) act(ctx context.Context, in *actInput) (*body[api.ActionResponse], error) {
	id := caller(ctx)
	out, targets, err := s.targets(id, in)
	if err != nil || in.Body.Count {
		return &body[api.ActionResponse]{out}, err
	}
	order := control.Act{Action: control.Action(in.Action), By: id.user, Operator: id.admin(), Signal: strings.TrimPrefix(strings.ToUpper(in.Body.Signal), "SIG"), Priority: in.Body.Priority}
	whole := targets[:0:0]
	for _, t := range targets {
		if t.tasks == nil {
			whole = append(whole, t)
			continue
		}
		ev := control.ActTasks{Act: order, Parent: t.number, Indexes: t.tasks}
		ev.Admin = t.admin
		outcome, err := do(ctx, s.loop, ev)
		if err != nil {
			return nil, s.fail(err)
		}
		takeOutcome(&out.Results[t.result], outcome)
	}
	for part := range slices.Chunk(whole, actChunk) {
		ev := order
		for _, t := range part {
			ev.Numbers = append(ev.Numbers, t.number)
			ev.Admin = ev.Admin || t.admin
		}
		outcomes, err := do(ctx, s.loop, ev)
		if err != nil {
			return nil, s.fail(err)
		}
		for i, o := range outcomes {
			takeOutcome(&out.Results[part[i].result], o)
		}
	}
	return &body[api.ActionResponse]{out}, nil
}

func takeOutcome(r *api.ActionResult, o control.Outcome) {
	r.Before, r.After, r.Message = o.Before, o.After, o.Message
	if o.Refusal != nil {
		r.Error = refused(o.Refusal)
	}
}

// target is a job to act on and where its outcome goes.
type target struct {
	number job.Number
	result int
	admin  bool        // the caller is not its owner
	tasks  job.Indexes // of an array; empty: all of the job
}

// targets resolves what an action names. Jobs that the caller may not touch
// are errors when named, and left out when matched by a filter.
func (s *Server) targets(id identity, in *actInput) (api.ActionResponse, []target, error) {
	var out api.ActionResponse
	var ts []target
	q := in.Body
	v := s.loop.view.Load()
	add := func(text string, j *state.Job) {
		ts = append(ts, target{number: j.Number, result: len(out.Results), admin: id.user != j.Owner.User})
		out.Results = append(out.Results, api.ActionResult{ID: text, Number: j.Number})
	}
	for _, text := range q.IDs {
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
		case !s.mayTouch(id, j.Owner):
			out.Results = append(out.Results, api.ActionResult{ID: text, Number: j.Number, Error: &api.Error{Status: 403, Code: api.CodeDenied,
				Message: fmt.Sprintf("job %d belongs to %s", j.Number, j.Owner.User)}})
		default:
			add(text, j)
		}
	}
	if len(q.IDs) == 0 {
		if q.User == "" && q.Project == "" && q.State == "" && q.Name == "" && q.Cluster == 0 {
			return out, nil, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: "name jobs, or give at least one filter"}
		}
		f := filter{User: q.User, Project: q.Project, State: q.State, Name: q.Name, Cluster: q.Cluster}
		if err := f.check(); err != nil {
			return out, nil, err
		}
		sums := v.Summaries()
		for j := range v.All() {
			if !j.State.Final() && f.lists(j, sums, func(*state.Owner) bool { return false }) && s.mayTouch(id, j.Owner) {
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
func (s *Server) absent(id identity, action, text string, refusal *state.Refusal) api.ActionResult {
	j, err := s.find(text)
	if err == nil && j != nil && s.mayTouch(id, j.Owner) && action != "cancel" {
		return api.ActionResult{ID: text, Number: j.Number, Before: j.State, After: j.State, Error: &api.Error{Status: 409, Code: api.CodeConflict,
			Message: fmt.Sprintf("job %d is %s: it has ended", j.Number, j.State), Hint: fmt.Sprintf("submit it as a new one; gqueue show --json %d has its document", j.Number)}}
	}
	if err == nil && j != nil && s.mayTouch(id, j.Owner) {
		return api.ActionResult{ID: text, Number: j.Number, Before: j.State, After: j.State, Message: "already " + string(j.State)}
	}
	return api.ActionResult{ID: text, Error: refused(refusal)}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func (s *Server) projectNames() []string {
	var out []string
	for _, p := range s.cfg().Projects {
		out = append(out, p.Name)
	}
	return out
}
