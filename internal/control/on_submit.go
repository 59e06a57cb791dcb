package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Submit is a new job. UUID is drawn by the caller, or derived from the user's
// idempotency key: a UUID that is known is answered with its job. The answer
// is Submitted, Past or *Refusal.
type Submit struct {
	UUID     [16]byte
	User     string
	Project  string // checked by the caller only for presence
	Operator bool   // may raise priority, and submit for any project
	Stranger bool   // the project has members and User is none of them
	Spec     *job.Spec
	Document []byte // Spec's JSON, stored with the job
	Sealed   []byte // encrypted registry credentials and secrets, or nil
	Secrets  bool   // there are secrets in Sealed
	Hold     bool
	DryRun   bool // check everything, change nothing; answered with Number 0

	Past map[string]*state.Job // by id: jobs out of history that the job waits for, as Past asked

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

	Budget *accounting.Budget // that binds the project most; nil: none
}

func (e Submit) apply(c *Controller, now sched.Time) any {
	if n, ok := c.byUUID[e.UUID]; ok && !e.DryRun {
		j := c.job(n)
		return Submitted{Number: n, State: j.State, Request: j.Request, Repeated: true}
	}
	if r := c.admit(e); r != nil {
		return r
	}
	req := e.Request
	if req == nil {
		req = c.intern.request(c.request(e.Spec, c.cfg.Projects[e.Project]))
	}
	probe := schedJob(schedID(c.next), &state.Owner{User: e.User, Project: e.Project, QOS: qosOf(e.Spec)}, req, now)
	if err := probe.Validate(); err != nil {
		return &state.Refusal{Code: state.Unsatisfiable, Path: "request", Message: err.Error()}
	}
	tasks, err := e.tasks()
	if err != nil {
		return &state.Refusal{Code: state.Unsatisfiable, Path: "gbatch.tasks", Message: err.Error()}
	}
	if r := c.tooMany(probe, e.Spec.Tasks().Len()); r != nil {
		return r
	}
	if r := c.refuseNever(now, probe); r != nil {
		return r
	}
	cron, r := c.cron(now, e.Spec)
	if r != nil {
		return r
	}
	others, why, answer := c.resolve(now, e, tasks)
	if answer != nil {
		return answer
	}
	if e.DryRun {
		return Submitted{Request: req, QOS: qosOf(e.Spec), Budget: c.budget(now, e.Project)}
	}
	if g := e.Spec.Gbatch; g != nil && g.Replace {
		others.waits = c.replace(now, e, others.waits)
	}
	c.fit(others)
	j := &state.Job{
		Number: c.next, UUID: e.UUID, Name: e.Spec.Name, Tasks: tasks,
		Owner:   c.intern.owner(state.Owner{User: e.User, Project: e.Project, QOS: qosOf(e.Spec)}),
		Request: req, Expected: e.Expected, State: job.Queued, Submitted: now, Since: now, Version: 1, Sealed: e.Sealed != nil, Waits: others.waits, Cron: cron,
	}
	if e.Secrets {
		j.Secrets = 1
	}
	if j.Expected == 0 {
		j.Expected = c.expect(j)
	}
	line := "submitted"
	if e.Hold {
		j.State, line = job.OnHold, "submitted on hold"
	}
	c.add(now, j, line)
	c.record(state.Record{Kind: state.KindSpec, Job: j.Number, Value: e.Document})
	if e.Sealed != nil {
		c.record(state.Record{Kind: state.KindSecret, Job: j.Number, Value: e.Sealed})
	}
	if why != "" {
		j = c.fail(now, j, job.DependencyFailed, why)
	}
	if len(others.each) > 0 {
		c.settleArrays(now) // it is over if none of its tasks can start
		j = c.job(j.Number)
	}
	return Submitted{Number: j.Number, State: j.State, Request: req, Budget: c.budget(now, e.Project)}
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

// tooMany refuses what would make the queue longer than it may be: the site's,
// and that of whoever submits. Each task counts, whether it is a job yet or not.
func (c *Controller) tooMany(probe sched.Job, more int) *state.Refusal {
	if c.queued+more > c.cfg.MaxQueued {
		return &state.Refusal{Code: state.OverLimit, Message: fmt.Sprintf("the queue is full: %d jobs and tasks wait, and the site's limit is %d", c.queued, c.cfg.MaxQueued),
			Hint: "submit again when some have run"}
	}
	if why, ok := c.sched.MayQueue(probe, more, c.outside()); !ok {
		return &state.Refusal{Code: state.OverLimit, Message: why.Text, Hint: "submit again when some of them have run"}
	}
	return nil
}

// admit refuses what the site's rules do not allow.
func (c *Controller) admit(e Submit) *state.Refusal {
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
func (c *Controller) refuseNever(now sched.Time, probe sched.Job) *state.Refusal {
	if len(c.nodes) == 0 || c.sched.Possible(probe.Shape) {
		return nil
	}
	r := &state.Refusal{Code: state.Unsatisfiable, Path: "request.resources", Message: "no node here can ever hold this job"}
	est, err := sched.WouldStart(c.input(now), probe)
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

// request draws out of a document what the scheduler needs, with the site's
// and the project's defaults where it is silent.
func (c *Controller) request(s *job.Spec, p Project) state.Request {
	r, sc := s.Request.Resources, s.Request.Scheduling
	g := s.Gbatch
	if g == nil {
		g = &job.Gbatch{}
	}
	shape := &sched.Shape{
		Nodes:    max(g.Nodes, 1),
		MilliCPU: int64(r.CPUs) * 1000, MemMiB: (s.MemoryBytes() + 1<<20 - 1) >> 20,
		AllGPUs: r.GPUs < 0, Exclusive: g.Exclusive || g.Privileged,
		Cluster: r.ClusterID, Node: r.SlaveName,
		GPUModels: r.GPUModel, GPUMemMiB: int64(r.GPUMemoryGB) << 10,
		DiskMiB: int64(g.DiskGB) << 10, MinCUDA: r.MinCudaVersion * 100, MinComputeCap: int(g.MinComputeCapability*10 + 0.5),
		Features: slices.Concat(r.Features, networkNeed(s), privilegeNeed(s)),

		AnyFeatures: g.AnyFeatures, NodeNames: g.NodeNames, ExcludeNodes: g.ExcludeNodes,
	}
	if len(p.Clusters) == 1 && shape.Cluster == 0 {
		shape.Cluster = p.Clusters[0]
	}
	if r.GPUs > 0 {
		shape.MilliGPU = int64(r.GPUs*1000 + 0.5)
	}
	q := state.Request{
		Shape: c.intern.shape(shape), Limit: sched.Time(sc.MaxDuration) * 1000, MinRun: sched.Time(sc.MinDuration) * 1000,
		Priority: g.Priority, NotBefore: sched.Time(sc.NotBefore), NotAfter: sched.Time(sc.NotAfter),
		MaxQueued: sched.Time(g.MaxQueued) * 1000, Interactive: sc.Interactive, Restartable: sc.Restartable,
		LimitScope: g.LimitScope, Retry: g.Retry, Reservations: sc.ReservationIDs, HaltSignal: g.HaltSignal, HaltGrace: sched.Time(g.HaltGrace) * 1000,
		HaltUnwarned: sc.AllowHaltWithoutSignal && g.HaltSignal == "",
		StopSignal:   g.StopSignal, StopGrace: sched.Time(g.StopGrace) * 1000,
		StartOrder: g.StartOrder, StopWhen: g.StopWhen,
	}
	if i := g.IdleGPU; i != nil && (shape.MilliGPU > 0 || shape.AllGPUs) {
		q.IdleMin, q.IdleWindow = i.MinUtilization, sched.Time(i.Window)*1000
	}
	q.Mails = s.Request.Extra.Mails()
	if c.cfg.MaxGrace > 0 {
		q.StopGrace = min(q.StopGrace, c.cfg.MaxGrace)
	}
	if q.Limit == 0 {
		q.Limit = c.cfg.DefaultRun
	}
	if q.MinRun == 0 {
		q.MinRun = min(c.cfg.DefaultMin, q.Limit)
	}
	if b := sc.MaxSimultaneousJobs; b != nil {
		q.Bucket, q.BucketMax = b.Name, b.Max
	}
	return q
}

func joinInts(list []int) string {
	var texts []string
	for _, n := range list {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ", ")
}

func qosOf(s *job.Spec) string {
	if s.Gbatch == nil {
		return ""
	}
	return s.Gbatch.QOS
}

// insert puts a job that is new to the table into every index.
func (c *Controller) insert(j *state.Job) {
	c.jobs.Put(j.Number, j)
	c.byUUID[j.UUID] = j.Number
	c.dependents.add(j)
	c.addNamesake(j)
	if j.Cron != nil {
		c.templates = append(c.templates, j.Number)
		c.findCronNext()
	}
	c.queued += j.Queued()
	switch {
	case j.Tasks != nil:
		c.addArray(j.Number)
		c.loadCorr(j, c.arrays[j.Number])
		c.touch(j.Number)
	case j.State == job.Queued:
		c.enqueue(j.Submitted, j)
	case j.State.Final():
		c.ended = append(c.ended, j.Number)
	}
}

// enqueue gives a queued job to the scheduler. Nobody else may have seen j yet.
// A job of the future, from before the clock was set back, counts as new.
func (c *Controller) enqueue(now sched.Time, j *state.Job) {
	if j.Cron != nil {
		return // a template does not run
	}
	s := c.schedJob(j)
	s.Submitted = min(s.Submitted, now)
	p := c.job(j.Parent)
	if p != nil {
		s.NotBefore = max(s.NotBefore, since(p.Waits))
	}
	s.NotBefore = max(s.NotBefore, since(j.Waits))
	if j.Restart != nil {
		s.Interactive = false // nobody waits at a terminal for it any more
	}
	if j.Tries > 0 || j.Restart != nil || p != nil && p.First > 0 {
		s.MaxQueued, s.NotAfter = 0, 0 // it, or its array, has started in time once
	}
	if j.Retried != nil {
		s.NotBefore = max(s.NotBefore, j.Retried.Until)
	}
	must(c.sched.Enqueue(s)) // checked when it was submitted
	j.Ref, _ = c.sched.Ref(s.ID)
}

// schedJob is a job of the table as the scheduler sees it.
func (c *Controller) schedJob(j *state.Job) sched.Job {
	s := schedJob(schedID(j.Number), j.Owner, j.Request, j.Submitted)
	if j.Expected > 0 {
		s.Predicted = min(j.Expected, s.Limit)
	}
	return s
}

func schedJob(id sched.JobID, o *state.Owner, r *state.Request, submitted sched.Time) sched.Job {
	return sched.Job{
		ID: id, Project: o.Project, User: o.User, QOS: o.QOS, Shape: r.Shape,
		Submitted: submitted, Limit: r.Limit, MinRun: r.MinRun, Priority: r.Priority,
		NotBefore: r.NotBefore, NotAfter: r.NotAfter, MaxQueued: r.MaxQueued, Interactive: r.Interactive, Restartable: r.Restartable,
		Bucket: r.Bucket, BucketMax: r.BucketMax, Reservations: r.Reservations,
	}
}

// interner keeps one copy of values that many jobs share. It is emptied when
// it grows large, which costs memory and never correctness.
type interner struct {
	shapes   map[string]*sched.Shape
	requests map[string]*state.Request
	owners   map[state.Owner]*state.Owner
}

const internMax = 1 << 16

func (in *interner) shape(s *sched.Shape) *sched.Shape {
	if in.shapes == nil || len(in.shapes) > internMax {
		in.shapes = map[string]*sched.Shape{}
	}
	k := state.Encode(s)
	if old, ok := in.shapes[string(k)]; ok {
		return old
	}
	in.shapes[string(k)] = s
	return s
}

func (in *interner) request(r state.Request) *state.Request {
	if in.requests == nil || len(in.requests) > internMax {
		in.requests = map[string]*state.Request{}
	}
	k := state.Encode(r)
	if old, ok := in.requests[string(k)]; ok {
		return old
	}
	in.requests[string(k)] = &r
	return &r
}

func (in *interner) owner(o state.Owner) *state.Owner {
	if in.owners == nil || len(in.owners) > internMax {
		in.owners = map[state.Owner]*state.Owner{}
	}
	if old, ok := in.owners[o]; ok {
		return old
	}
	in.owners[o] = &o
	return &o
}
