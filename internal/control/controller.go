package control

import (
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/control/array"
	"gbatch/internal/control/depend"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
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

// Controller is the whole state, in parts that each keep their own invariants.
// Create it with New, fill it by Load, then call Apply and Schedule from one
// goroutine.
type Controller struct {
	cfg       Config
	jobs      jobs
	nodes     nodes
	arrays    *array.Set
	depends   *depend.Set
	queue     queue
	ledger    ledger
	templates templates
	idle      map[job.Number]*idleWatch // jobs that want to end when their GPUs do nothing
	out       Effects                   // of the step under way

	intern  interner
	loading map[job.Number][]state.Record // of arrays, until all are there
}

// New returns an empty controller. Epoch must be larger than that of any
// earlier start on the same records.
func New(cfg Config, epoch uint64) (*Controller, error) {
	st, err := sched.New(cfg.Policy)
	if err != nil {
		return nil, fmt.Errorf("scheduling policy: %w", err)
	}
	books, err := accounting.New(cfg.Accounting)
	if err != nil {
		return nil, fmt.Errorf("accounting: %w", err)
	}
	return &Controller{
		cfg: cfg, jobs: newJobs(), nodes: nodes{epoch: epoch}, arrays: array.NewSet(), depends: depend.NewSet(),
		queue: queue{sched: st, due: true, promised: map[job.Number]sched.Time{}}, ledger: ledger{Ledger: books},
		idle: map[job.Number]*idleWatch{}, loading: map[job.Number][]state.Record{}, out: Effects{noRecords: cfg.NoRecords},
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
	return &state.View{Now: now, Nodes: c.nodes.list, Plan: c.queue.plan, Windows: c.queue.windows, Billing: c.cfg.Accounting, Jobs: c.jobs.table.Snapshot()}
}
