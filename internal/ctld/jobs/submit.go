package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Submissions takes jobs.
type Submissions struct {
	Conf   func() *site.Config
	Rights *access.Rights
	Loop   *loop.Loop
	Jobs   *jobstore.Reader
	Meters *meter.Meters

	HasTree func(ctx context.Context, user, id string) (bool, error) // whether a user has brought a directory along; it stays then until the job is there
}

// SubmitInput is a submission.
type SubmitInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"makes the submission safe to repeat"`
	Body api.SubmitRequest
}

// keySpace is where the UUIDs live that are made of idempotency keys.
var keySpace = uuid.MustParse("5f2a9c1e-7d0b-4b57-9a39-62b1c5f0d3a4")

// Submit puts a job into the queue, or says what would become of it.
func (s *Submissions) Submit(ctx context.Context, in *SubmitInput) (*api.SubmitResponse, error) {
	w, err := s.work(ctx, in)
	if err != nil || w.done {
		return &w.out, err
	}
	a, err := s.untilKnown(ctx, w.ev, loop.Begin(ctx, s.Loop, w.ev))
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, in, w, a)
}

// work is a submission that was checked, up to what the loop decides.
type work struct {
	sub  job.Submission
	ev   control.Submit
	out  api.SubmitResponse
	done bool // out is the answer: it had been submitted before
}

func (s *Submissions) work(ctx context.Context, in *SubmitInput) (w *work, err error) {
	id := access.Caller(ctx)
	w = &work{}
	if w.sub, err = job.Parse(in.Body.Job); err != nil {
		return w, err
	}
	spec := &w.sub.Spec
	if in.Body.Interactive {
		if err := spec.MakeInteractive(); err != nil {
			return w, err
		}
	}
	if err := s.Conf().ResolveTables(spec); err != nil {
		return w, err
	}
	w.sub.Notes = append(w.sub.Notes, dropForeign(s.Loop.View(), spec)...)
	w.sub.Notes = append(w.sub.Notes, takeShare(s.Loop.View(), spec)...)
	if err := s.checkTrees(ctx, id.User, in.Body.DryRun, spec); err != nil {
		return w, err
	}
	if err := setDependencies(spec, in.Body.Dependency); err != nil {
		return w, err
	}
	if w.ev, err = s.submitEvent(id, in, &w.sub); err != nil {
		return w, err
	}
	w.out.Project = w.ev.Project
	for _, n := range w.sub.Notes {
		w.out.Notes = append(w.out.Notes, api.Note{Path: n.Path, Message: n.Message})
	}
	w.out.Notes = append(w.out.Notes, s.siteNotes(spec)...)
	w.done, err = s.repeated(in, w.ev, &w.out)
	return w, err
}

// answer says what became of a submission.
func (s *Submissions) answer(ctx context.Context, in *SubmitInput, w *work, a control.Submitted) (*api.SubmitResponse, error) {
	out, ev := w.out, w.ev
	out.Notes = append(out.Notes, budgetNote(a.Budget)...)
	for _, why := range a.Left {
		out.Notes = append(out.Notes, api.Note{Path: "gbatch.partitions", Message: why})
	}
	if in.Body.DryRun {
		return s.dryRun(ctx, out, &w.sub, ev, a)
	}
	if a.Repeated {
		if err := s.sameDocument(a.Number, ev.Document); err != nil {
			return nil, err
		}
	}
	out.Number, out.State, out.Repeated, out.UUID = a.Number, a.State, a.Repeated, uuid.UUID(ev.UUID).String()
	return &out, nil
}

// checkTrees refuses a job whose directories are not here: when it is accepted,
// they are on disk. Who only asks need not have sent them.
func (s *Submissions) checkTrees(ctx context.Context, user string, dry bool, spec *job.Spec) error {
	if dry || spec.Gbatch == nil {
		return nil
	}
	var wrong job.Problems
	for i, in := range spec.Gbatch.Inputs {
		id, _, is := in.Tree()
		if !is {
			continue
		}
		has, err := s.HasTree(ctx, user, id)
		if err != nil {
			return err
		}
		if !has {
			wrong = append(wrong, job.Problem{Path: fmt.Sprintf("gbatch.inputs[%d].uri", i), Message: "names a directory that " + user + " has not brought along, or that was removed when no job needed it any more",
				Hint: "submit with gsubmit --workdir-upload DIR"})
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

func (s *Submissions) submitEvent(id access.Identity, in *SubmitInput, sub *job.Submission) (control.Submit, error) {
	ev := control.Submit{User: id.User, Operator: id.Operator(), Spec: &sub.Spec, Hold: in.Body.Hold, DryRun: in.Body.DryRun}
	if g := sub.Spec.Gbatch; g != nil && g.CronZone != "" && g.CronZone != "Local" {
		ev.Zone, _ = loop.Zone(g.CronZone) // the event refuses one that there is not
	}
	ev.Project = cmp.Or(in.Body.Project, sub.Spec.ProjectName(), id.Project, s.Conf().DefaultProject)
	if ev.Project == "" {
		return ev, api.Errorf(api.CodeInvalidJob, "the job names no project, and this site has no default").
			WithHint("use --project; " + s.projectsOf(id))
	}
	if !s.Rights.SeesProject(id, ev.Project) { // the same of one that is not there
		return ev, api.Errorf(api.CodeDenied, "there is no project %q for %s to submit to", ev.Project, id.User).WithHint(s.projectsOf(id))
	}
	if p, _ := s.Conf().Project(ev.Project); p.Runtime != "" {
		if field, why := sub.Spec.RequireRuntime(p.Runtime); why != "" {
			return ev, api.Errorf(api.CodeDenied, "gbatch.%s: %s", field, why).
				WithHint(fmt.Sprintf("jobs of project %s are run by the runtime %s", ev.Project, p.Runtime))
		}
	}
	ev.Stranger, ev.Closed = s.Rights.Stranger(id, ev.Project), s.Rights.Closed(id)
	notes, err := s.Conf().ResolveBatch(&sub.Spec, ev.User, ev.Project)
	if err != nil {
		return ev, err
	}
	sub.Notes = append(sub.Notes, notes...)
	ev.UUID = uuid.New()
	if in.Key != "" {
		ev.UUID = uuid.NewSHA1(keySpace, []byte(id.User+"\x00"+in.Key))
	}
	if ev.Document, err = json.Marshal(sub.Spec); err != nil {
		return ev, fmt.Errorf("encode job: %w", err)
	}
	err = s.Jobs.SealSubmission(&ev, sub)
	return ev, err
}

// repeated answers a key whose job has long ended and left the table.
func (s *Submissions) repeated(in *SubmitInput, ev control.Submit, out *api.SubmitResponse) (bool, error) {
	if in.Key == "" || in.Body.DryRun {
		return false, nil
	}
	n, ok, err := s.Jobs.NumberOf(ev.UUID)
	if err != nil || !ok {
		return false, err
	}
	if err := s.sameDocument(n, ev.Document); err != nil {
		return true, err
	}
	j, err := s.Jobs.Past(n)
	if err != nil || j == nil {
		return true, err
	}
	out.Number, out.UUID, out.State, out.Repeated = n, uuid.UUID(ev.UUID).String(), j.State, true
	return true, nil
}

// sameDocument refuses a key that was used for another job.
func (s *Submissions) sameDocument(n job.Number, doc []byte) error {
	old, ok, err := s.Jobs.Text(n)
	if err != nil {
		return err
	}
	if ok && string(old) != string(doc) {
		return api.Errorf(api.CodeConflict, "this idempotency key was used for job %d, which is another document", n).
			WithHint("use a new key for a new job")
	}
	return nil
}

func (s *Submissions) dryRun(ctx context.Context, out api.SubmitResponse, sub *job.Submission, ev control.Submit, a control.Submitted) (*api.SubmitResponse, error) {
	spec := sub.Spec
	out.Effective = &spec
	var failed error
	err := s.Loop.Ask(ctx, func(c *control.Controller, now sched.Time) {
		est, err := c.WouldStart(now, state.Owner{User: ev.User, Project: ev.Project, QOS: a.QOS}, a.Request)
		out.Estimate, failed = estimateToAPI(now, est), err
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	return &out, nil
}

// projectsOf says which projects a caller may submit to.
func (s *Submissions) projectsOf(id access.Identity) string {
	var names []string
	for _, p := range s.Conf().Projects {
		if s.Rights.SeesProject(id, p.Name) {
			names = append(names, p.Name)
		}
	}
	return "projects that you may use: " + strings.Join(names, ", ")
}
