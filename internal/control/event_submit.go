package control

import (
	"fmt"
	"time"

	"gbatch/accounting"
	"gbatch/internal/control/ask"
	"gbatch/internal/control/picture"
	"gbatch/internal/control/quota"
	"gbatch/internal/control/resolve"
	"gbatch/internal/control/templates"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Submit is a new job. UUID is drawn by the caller, or derived from the user's
// idempotency key: a UUID that is known is answered with its job.
type Submit struct {
	UUID     [16]byte
	User     string
	Project  string   // checked by the caller only for presence
	Operator bool     // may raise priority, and submit for any project
	Stranger bool     // the project has members and User is none of them
	Closed   []string // partitions that are for other users
	Spec     *job.Spec
	Document []byte // Spec's JSON, stored with the job
	Sealed   []byte // encrypted registry credentials and secrets, or nil
	Secrets  bool   // there are secrets in Sealed
	Hold     bool
	Zone     *time.Location // that the time table names; nil: it names none, or there is none of that name
	DryRun   bool           // check everything, change nothing; answered with Number 0

	Past map[string]*state.Job // by id: jobs out of history that the job waits for, as Submitted.Past asked

	// Request is what the job asks, where that is not to be drawn from Spec;
	// Expected its run time, where the caller knows it. A simulation has both.
	Request  *state.Request
	Expected sched.Time
}

// Submitted answers Submit.
type Submitted struct {
	Number   job.Number
	State    job.State
	QOS      string
	Request  *state.Request
	Repeated bool // the UUID was known

	// Past is jobs that the new one names and that have left the table. If there
	// are any, nothing was done: the same event is to be sent again with them in
	// Submit.Past, nil for those that there never were.
	Past []string

	Left []string // why partitions that the job names do not take it, where another of them does

	Budget *accounting.Budget // the budget that binds the project most; nil: none
}

func (e Submit) apply(s *step) (Submitted, *state.Refusal) {
	if n, ok := s.jobs.byUUID[e.UUID]; ok && !e.DryRun {
		j := s.jobs.get(n)
		return Submitted{Number: n, State: j.State, Request: j.Request, Repeated: true}, nil
	}
	if r := s.cfg.rules().Refuse(e.who(), e.Spec); r != nil {
		return Submitted{}, r
	}
	req, left, r := e.request(s)
	if r != nil {
		return Submitted{}, r
	}
	probe := picture.Job(s.jobs.next, &state.Owner{User: e.User, Project: e.Project, QOS: ask.QOS(e.Spec)}, req, s.now)
	if err := probe.Validate(); err != nil {
		return Submitted{}, &state.Refusal{Code: state.Unsatisfiable, Path: "request", Message: err.Error()}
	}
	tasks, err := e.tasks()
	if err != nil {
		return Submitted{}, &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.tasks", Message: err.Error()}
	}
	if r := s.jobs.tooMany(probe, e.Spec.Tasks().Len()); r != nil {
		return Submitted{}, r
	}
	if r := e.tooMuch(s, e.amount()); r != nil {
		return Submitted{}, r
	}
	if r := e.refuseReserved(s); r != nil {
		return Submitted{}, r
	}
	if r := e.refuseNever(s, probe); r != nil {
		return Submitted{}, r
	}
	cron, r := templates.New(e.Spec.Gbatch, e.Zone, s.now)
	if r != nil {
		return Submitted{}, r
	}
	others, why, r := resolve.New(resolve.Asked{Now: s.now, Spec: e.Spec, User: e.User, Next: s.jobs.next, Tasks: tasks, Past: e.Past, Jobs: &s.jobs.table, Depends: s.depends.Set, Arrays: s.arrays.Set})
	if r != nil {
		return Submitted{}, r
	}
	if len(others.Absent) > 0 {
		return Submitted{Past: others.Absent}, nil
	}
	if r := e.tooMuch(s, quota.Amount{Needs: quota.NeedsOf(others.Waits) + int64(len(others.Each))}); r != nil {
		return Submitted{}, r
	}
	if e.DryRun {
		return Submitted{Request: req, QOS: ask.QOS(e.Spec), Left: left, Budget: s.ledger.Budget(e.Project)}, nil
	}
	if g := e.Spec.Gbatch; g != nil && g.Replace && cron == nil {
		others.Waits = e.replace(s, others.Waits)
	}
	others.Fit()
	j, line := e.job(s, req, tasks)
	j.Waits, j.Cron = others.Waits, cron
	s.jobs.add(j, line)
	s.jobs.stored(e.User, e.amount())
	s.out.Store(state.Record{Kind: state.KindSpec, Job: j.Number, Value: e.Document})
	if e.Sealed != nil {
		s.out.Store(state.Record{Kind: state.KindSecret, Job: j.Number, Value: e.Sealed})
	}
	if why != "" {
		j = s.depends.miss(j, why)
	}
	if len(others.Each) > 0 {
		s.arrays.update() // it is over if none of its tasks can start
		j = s.jobs.get(j.Number)
	}
	return Submitted{Number: j.Number, State: j.State, Request: req, Left: left, Budget: s.ledger.Budget(e.Project)}, nil
}

func (e Submit) who() ask.Who {
	return ask.Who{User: e.User, Project: e.Project, Operator: e.Operator, Stranger: e.Stranger, Closed: e.Closed}
}

// request is what the scheduler is to know of the job, and why partitions that it
// names are left out.
func (e Submit) request(s *step) (*state.Request, []string, *state.Refusal) {
	if e.Request != nil {
		return e.Request, nil, nil
	}
	rules := s.cfg.rules()
	shape, chosen, refusal := rules.Place(e.who(), e.Spec, s.nodes.partitions())
	if refusal != nil {
		return nil, nil, refusal
	}
	shape.Storage = s.queue.sched.Roots(shape.Storage)
	req := rules.Request(e.Spec, s.intern.Shape(shape), chosen.Limit)
	return s.intern.Request(req), chosen.Left, nil
}

// tooMuch refuses what is more than the user may have. Operators, who could raise
// the limits as well, are not bound by them.
func (e Submit) tooMuch(s *step, more quota.Amount) *state.Refusal {
	if e.Operator {
		return nil
	}
	return s.jobs.tooMuch(e.User, more)
}

// amount is what the new job counts for; what it waits for is not known yet.
func (e Submit) amount() quota.Amount {
	g := e.Spec.Gbatch
	template := g != nil && len(g.Cron) > 0
	asked := e.Spec.Tasks()
	if template {
		asked = nil // the jobs that it makes have them
	}
	a := amountOf(asked)
	a.Bytes = int64(len(e.Document) + len(e.Sealed))
	if template {
		a.Templates = 1
	}
	return a
}

// amountOf is what a new job counts for that has such tasks, nil if it is no array.
func amountOf(asked *job.Tasks) quota.Amount {
	a := quota.Amount{Jobs: 1, Records: quota.RecordsOfJob}
	if asked != nil {
		a.Tasks = int64(asked.Len())
		a.Records += quota.RecordsOfJob * a.Tasks
	}
	return a
}

// job is the new job, and the first line of its timeline.
func (e Submit) job(s *step, req *state.Request, tasks *state.Tasks) (*state.Job, string) {
	j := &state.Job{
		Number: s.jobs.next, UUID: e.UUID, Name: e.Spec.Name, Tasks: tasks,
		Owner:   s.intern.Owner(state.Owner{User: e.User, Project: e.Project, QOS: ask.QOS(e.Spec)}),
		Request: req, Expected: e.Expected, State: job.Queued, Submitted: s.now, Since: s.now, Version: 1, Sealed: e.Sealed != nil,
		DocBytes: int32(len(e.Document)), SealedBytes: int32(len(e.Sealed)),
	}
	if e.Secrets {
		j.Secrets = 1
	}
	if j.Expected == 0 {
		j.Expected = s.queue.expect(j)
	}
	line := "submitted"
	if e.Hold {
		line = "submitted on hold"
		j.State, j.Reason, j.Text = job.OnHold, job.ByUser, line
	}
	return j, line
}

func (e Submit) audit(a Submitted) Audit {
	if a.Number == 0 {
		return Audit{Object: "project " + e.Project, Change: "job " + e.Spec.Name, Nothing: e.DryRun || len(a.Past) > 0}
	}
	return Audit{Object: fmt.Sprintf("job %d", a.Number), Change: fmt.Sprintf("submitted for project %s, %s", e.Project, a.State), Nothing: a.Repeated}
}

// tasks are those of the job itself: a template has none, the jobs that it makes
// have.
func (e Submit) tasks() (*state.Tasks, error) {
	if g := e.Spec.Gbatch; g != nil && len(g.Cron) > 0 {
		return nil, nil
	}
	return tasksOf(e.Spec.Tasks())
}

// tasksOf are those of a new array, nil for other jobs.
func tasksOf(asked *job.Tasks) (*state.Tasks, error) {
	if asked == nil {
		return nil, nil
	}
	a, err := state.NewArray(*asked)
	if err != nil {
		return nil, err
	}
	return state.NewTasks(a), nil
}

// replace cancels the user's earlier jobs of the name and project of one that
// takes their place, and lets it wait until they are over.
func (e Submit) replace(s *step, waits *state.Waits) *state.Waits {
	for n := s.depends.Earlier(e.Spec.Name, e.User, s.jobs.next, &s.jobs.table); n != 0; n = s.depends.Earlier(e.Spec.Name, e.User, n, &s.jobs.table) {
		if j := s.jobs.get(n); j.Owner.Project == e.Project {
			Act{Action: Cancel, By: e.User}.cancel(s, j)
		}
	}
	n := s.depends.Earlier(e.Spec.Name, e.User, s.jobs.next, &s.jobs.table)
	if n == 0 {
		return waits
	}
	w := &state.Waits{}
	if waits != nil {
		*w = *waits
	}
	w.Needs, w.Met = append(w.Needs[:len(w.Needs):len(w.Needs)], state.Need{Type: job.Singleton, Job: n}), false
	return w
}
