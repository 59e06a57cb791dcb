package control

import (
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/control/array"
	"gbatch/internal/control/depend"
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

	jobs  jobs
	nodes []*state.Node // sorted by name; values are immutable

	arrays  *array.Set
	depends *depend.Set
	loading map[job.Number][]state.Record
	limits  []watched // jobs whose run time is kept here, the first to end first

	windows []sched.Window // advance reservations, in the order they were made

	epoch     uint64                    // of this start; makes desired-set versions grow over restarts
	versions  uint64                    // of desired sets, in this epoch
	promised  map[job.Number]sched.Time // first estimate of jobs that have had one and wait still
	dirty     bool                      // something changed that a decision may depend on
	plan      *sched.Plan
	planned   sched.Time
	intern    interner
	predictor predict.Predictor
	out       Effects // of the step under way

	templates []job.Number // by number
	cronNext  sched.Time   // when the next of them is due; 0: none
	idle      map[job.Number]*idleWatch
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
		cfg: cfg, sched: st, ledger: ledger, epoch: epoch, jobs: newJobs(),
		promised: map[job.Number]sched.Time{}, dirty: true,
		depends: depend.NewSet(), idle: map[job.Number]*idleWatch{},
		arrays: array.NewSet(), loading: map[job.Number][]state.Record{},
	}, nil
}

func (c *Controller) job(n job.Number) *state.Job { return c.jobs.get(n) }

func must(err error) {
	if err != nil {
		panic(err) // values of our own types always encode
	}
}

// View takes a snapshot. Only the owner may call it, and may publish it only
// when the records of all steps before are durable.
func (c *Controller) View(now sched.Time) *state.View {
	return &state.View{Now: now, Nodes: c.nodes, Plan: c.plan, Windows: c.windows, Billing: c.cfg.Accounting, Jobs: c.jobs.table.Snapshot()}
}
