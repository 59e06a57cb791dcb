package control

import (
	"fmt"
	"slices"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/predict"
)

// Config is the site's rules that the controller needs. It is replaced as a
// whole by SetConfig.
type Config struct {
	Policy      sched.Policy
	Accounting  accounting.Config
	Projects    map[string]Project
	DefaultRun  sched.Time // time limit of a job that asks none
	MaxRun      sched.Time // longest limit a job may ask
	DefaultMin  sched.Time // guaranteed run time of a job that asks none
	Grace       sched.Time // between TERM and KILL
	MaxGrace    sched.Time // the longest that a job may ask instead; 0: no bound
	SuspectTime sched.Time // a node silent for this long gets no new jobs
	NodeTimeout sched.Time // a node silent for this long is lost, and its ranks with it
	KeepEnded   sched.Time // ended jobs stay in the table this long
	KeepCount   int        // and at most this many of them
	MaxQueued   int        // waiting jobs in all
	NoRecords   bool       // return no Records: for a simulation that never restarts
}

// Project is who is billed.
type Project struct {
	GID      int
	Clusters []int // that its jobs may use; empty: all

	Privileged bool // its jobs may be root on their nodes
}

// Controller is the whole state. Create it with New, fill it by Load, then
// call Apply and Schedule from one goroutine.
type Controller struct {
	cfg    Config
	sched  *sched.State
	ledger *accounting.Ledger

	rollAt     sched.Time         // when a day ends that the ledger has not closed yet
	lastShares *accounting.Shares // of the last round; nil: none yet, or the rules are others

	jobs   state.Table
	byUUID map[[16]byte]job.Number
	next   job.Number
	nodes  []*state.Node // sorted by name; values are immutable

	arrays  map[job.Number]*array // of parents that are not over
	touched []job.Number          // parents to be looked at before the step ends
	loading map[job.Number][]state.Record
	limits  []watched // jobs whose run time is kept here, the first to end first

	windows []sched.Window // advance reservations, in the order they were made

	ended     []job.Number // in the table and over, oldest first
	epoch     uint64       // of this start; makes desired-set versions grow over restarts
	versions  uint64       // of desired sets, in this epoch
	queued    int
	promised  map[job.Number]sched.Time // first estimate of jobs that have had one and wait still
	dirty     bool                      // something changed that a decision may depend on
	plan      *sched.Plan
	planned   sched.Time
	intern    interner
	predictor predict.Predictor
	out       Effects // of the step under way

	dependents dependents // who waits for whom
	unsettled  []news     // jobs that began or ended, whose dependents were not all told yet
	namesakes  namesakes
	corr       map[job.Number][]job.Number // arrays whose tasks wait for those of one
	templates  []job.Number                // by number
	cronNext   sched.Time                  // when the next of them is due; 0: none
	idle       map[job.Number]*idleWatch
}

// New returns an empty controller. Epoch must be larger than that of any
// earlier start on the same records.
func New(cfg Config, epoch uint64) (*Controller, error) {
	st, err := sched.New(cfg.Policy)
	if err != nil {
		return nil, fmt.Errorf("scheduling policy: %w", err)
	}
	ledger, err := accounting.New(cfg.Accounting)
	if err != nil {
		return nil, fmt.Errorf("accounting: %w", err)
	}
	return &Controller{
		cfg: cfg, sched: st, ledger: ledger, epoch: epoch, next: 1,
		byUUID: map[[16]byte]job.Number{}, promised: map[job.Number]sched.Time{}, dirty: true,
		dependents: newDependents(), namesakes: namesakes{}, idle: map[job.Number]*idleWatch{},
		arrays: map[job.Number]*array{}, corr: map[job.Number][]job.Number{}, loading: map[job.Number][]state.Record{},
	}, nil
}

// Event is something that happened. Each has its own type and handler.
type Event interface {
	apply(*Controller, sched.Time) any
}

// Apply takes one event. The answer's type is documented at the event.
func (c *Controller) Apply(now sched.Time, ev Event) Effects {
	c.out = Effects{}
	c.out.Answer = ev.apply(c, now)
	c.endStep(now)
	c.recordUsage()
	return c.out
}

// change puts a changed copy of a job into the table, records it, and writes
// the line of its timeline if there is one.
func (c *Controller) change(now sched.Time, old *state.Job, line string, edit func(*state.Job)) *state.Job {
	j := *old
	edit(&j)
	j.Version++
	if j.State != old.State {
		if !canMove(old, j.State) {
			panic(fmt.Sprintf("job %d: %v", j.Number, &job.MoveError{From: old.State, To: j.State}))
		}
		j.Since = now
		c.moved(now, old, &j)
		c.tellMail(&j, old.State)
	}
	c.queued += j.Queued() - old.Queued()
	c.jobs.Put(j.Number, &j)
	if j.Parent > 0 {
		c.taskChanged(old, &j)
	}
	c.recordJob(state.KindJob, &j)
	if line != "" || j.State != old.State {
		c.event(now, &j, old.State, line)
	}
	c.out.Changed = append(c.out.Changed, j.Number)
	return &j
}

func canMove(j *state.Job, to job.State) bool {
	if j.Tasks != nil {
		return job.CanMoveParent(j.State, to)
	}
	return job.CanMove(j.State, to)
}

// tellMail notes a change of state for those who want a mail about it; of an
// array that is the whole, not each task.
func (c *Controller) tellMail(j *state.Job, from job.State) {
	if j.Request.Mails && j.Parent == 0 && j.Cron == nil {
		c.out.Moved = append(c.out.Moved, Moved{Job: j.Number, From: from, To: j.State})
	}
}

// moved keeps the counts and indexes right when a job changes state.
func (c *Controller) moved(now sched.Time, old, j *state.Job) {
	c.dirty = true
	if !j.State.Pending() {
		c.dependents.drop(old)
	}
	if j.State.Final() || j.State == job.Running {
		c.tell(j)
	}
	switch {
	case j.Tasks != nil:
	case j.State == job.Queued:
		c.enqueue(now, j)
	case old.State == job.Queued && !j.State.Active():
		delete(c.promised, j.Number)
		c.sched.Dequeue(schedID(j.Number))
	}
	if old.State == job.Running {
		delete(c.idle, j.Number)
	}
	if j.Cron != nil {
		c.cronNext = now // looked up anew by the next Tick
	}
	if !old.State.Final() && j.State.Final() {
		j.Ended = now
		c.countEnd(now, j)
		c.observe(j)
		c.ended = append(c.ended, j.Number)
		if j.Sealed && !c.keepsSealed(j) {
			j.Sealed = false
			c.record(state.Record{Kind: state.KindSecret, Job: j.Document()})
		}
	}
}

func (c *Controller) event(now sched.Time, j *state.Job, before job.State, msg string) {
	if c.cfg.NoRecords {
		return
	}
	l := state.Line{Time: now, Message: msg}
	if j.State != before {
		l.State = j.State
	}
	c.record(state.Record{Kind: state.KindEvent, Job: j.Number, Seq: j.Version, Value: state.Encode(l)})
}

func (c *Controller) record(r state.Record) {
	if !c.cfg.NoRecords {
		c.out.Records = append(c.out.Records, r)
	}
}

func (c *Controller) recordJob(kind state.Kind, j *state.Job) {
	if !c.cfg.NoRecords {
		c.record(state.Record{Kind: kind, Job: j.Number, Value: state.Encode(j)})
	}
}

func (c *Controller) job(n job.Number) *state.Job { return c.jobs.Get(n) }

// Check verifies every invariant that holds between steps. Tests and the
// simulator call it after each step; it costs O(jobs).
func (c *Controller) Check() error {
	if err := c.sched.Check(); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	queued := 0
	type grant struct{ node, gpu string }
	granted := map[grant]int64{}
	for j := range c.jobs.All() {
		if err := c.checkJob(j); err != nil {
			return fmt.Errorf("job %d: %w", j.Number, err)
		}
		queued += j.Queued()
		if !j.State.Active() {
			continue
		}
		for _, r := range j.Attempt.Ranks {
			for _, g := range r.Alloc.GPUs {
				k := grant{r.Alloc.Node, g.UUID}
				if granted[k] += g.Milli; granted[k] > 1000 {
					return fmt.Errorf("GPU %s of %s is granted %d/1000 times", g.UUID, r.Alloc.Node, granted[k])
				}
			}
		}
	}
	if err := c.checkWaits(); err != nil {
		return err
	}
	if err := c.checkArrays(); err != nil {
		return err
	}
	if queued != c.queued {
		return fmt.Errorf("counted %d queued jobs, kept count is %d", queued, c.queued)
	}
	return nil
}

func (c *Controller) checkJob(j *state.Job) error {
	if c.byUUID[j.UUID] != j.Number {
		return fmt.Errorf("its UUID leads to job %d", c.byUUID[j.UUID])
	}
	if j.State.Active() != (j.Attempt != nil && j.Attempt.End == 0) {
		return fmt.Errorf("it is %s but its attempt says otherwise", j.State)
	}
	if j.Ending != nil && !j.State.Active() && j.Tasks == nil {
		return fmt.Errorf("it is %s and being ended", j.State)
	}
	if !j.State.Active() {
		return nil
	}
	held, _ := c.sched.Running(schedID(j.Number))
	for i, r := range j.Attempt.Ranks {
		if i >= len(held.Ranks) || held.Ranks[i].MilliCPU != r.Alloc.MilliCPU || held.Ranks[i].MemMiB != r.Alloc.MemMiB {
			return fmt.Errorf("its rank %d holds %s, and not to the scheduler", i, sizeText(r.Alloc))
		}
		n := c.node(r.Alloc.Node)
		if n == nil {
			return fmt.Errorf("it runs on %s, which is no node", r.Alloc.Node)
		}
		if slices.Contains(n.Jobs, j.Number) != j.On(n.Name) {
			return fmt.Errorf("node %s and the job disagree whether it is there", n.Name)
		}
	}
	return nil
}

func must(err error) {
	if err != nil {
		panic(err) // values of our own types always encode
	}
}
