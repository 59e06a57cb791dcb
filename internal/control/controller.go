package control

import (
	"errors"
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/control/array"
	"gbatch/internal/control/ask"
	"gbatch/internal/control/depend"
	"gbatch/internal/control/effects"
	"gbatch/internal/control/fit"
	"gbatch/internal/control/idle"
	"gbatch/internal/control/ledger"
	"gbatch/internal/control/partition"
	"gbatch/internal/control/quota"
	"gbatch/internal/control/standby"
	"gbatch/internal/control/templates"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Config is the site's rules that the controller needs. It is replaced as a
// whole by SetConfig.
type Config struct {
	Policy      sched.Policy
	Accounting  accounting.Config
	Projects    map[string]ask.Project
	Partitions  partition.List
	DefaultRun  sched.Time // time limit of a job that asks none
	MaxRun      sched.Time // longest limit a job may ask
	DefaultMin  sched.Time // guaranteed run time of a job that asks none
	Grace       sched.Time // between TERM and KILL
	MaxGrace    sched.Time // the longest that a job may ask instead; 0: no bound
	SuspectTime sched.Time // a node silent for this long gets no new jobs
	NodeTimeout sched.Time // a node silent for this long is lost, and its ranks with it
	RebootTime  sched.Time // a node that was told to reboot is back by then
	RunsAlone   []string   // classes of service whose jobs are not given up with a node that is lost
	KeepEnded   sched.Time // ended jobs stay in the table this long
	KeepCount   int        // and at most this many of them
	MaxQueued   int        // waiting jobs in all
	PerUser     quota.Limits
	Users       map[string]quota.Limits // instead of PerUser, by name
	NoRecords   bool                    // return no Records: for a simulation that never restarts
}

// limitsOf is what a user may have.
func (c *Config) limitsOf(user string) quota.Limits {
	if l, ok := c.Users[user]; ok {
		return l
	}
	return c.PerUser
}

// rules are what the site allows jobs to ask, and what it has where they are silent.
func (c *Config) rules() ask.Rules {
	return ask.Rules{
		Projects: c.Projects, Partitions: c.Partitions, QOS: c.Policy.QOS, DefaultQOS: c.Policy.DefaultQOS, Licenses: c.Policy.Licenses,
		DefaultRun: c.DefaultRun, MaxRun: c.MaxRun, DefaultMin: c.DefaultMin, MaxGrace: c.MaxGrace,
	}
}

// patience is for how long a node may be silent.
func (c *Config) patience() fit.Patience {
	return fit.Patience{Suspect: c.SuspectTime, Lost: c.NodeTimeout}
}

// Controller is the whole state, in parts that each keep their own invariants.
// Create it with New, fill it by Load, then call Apply and Schedule from one
// goroutine.
type Controller struct {
	parts
	step    step                          // the last one
	loading map[job.Number][]state.Record // of arrays, until all are there
	pasts   map[string][]state.NodeChange // of nodes, until these are there
	standby *standby.Jobs                 // all jobs, until the rest is there
}

// New returns an empty controller. Epoch must be larger than that of any
// earlier start on the same records.
func New(cfg Config, epoch uint64) (*Controller, error) { return Of(cfg, epoch, standby.New()) }

// Of is New for jobs that are known, which are its own from here on. Their records need not be loaded.
func Of(cfg Config, epoch uint64, all *standby.Jobs) (*Controller, error) {
	if err := all.Sched.SetPolicy(cfg.Policy); err != nil {
		return nil, fmt.Errorf("scheduling policy: %w", err)
	}
	c := &Controller{loading: map[job.Number][]state.Record{}, pasts: map[string][]state.NodeChange{}, standby: all}
	p := &c.parts
	p.cfg, p.intern, p.out = &cfg, all.Intern, &effects.Output{NoRecords: true} // what is loaded is stored
	var err error
	if p.ledger, err = ledger.New(ledger.Rules{Accounts: &p.cfg.Accounting, Policy: &p.cfg.Policy}, p.out); err != nil {
		return nil, err
	}
	p.queue = &queue{sched: all.Sched, due: true, promised: map[job.Number]sched.Time{}, cfg: p.cfg, ledger: p.ledger, out: p.out}
	p.nodes = &nodes{epoch: epoch, queue: p.queue, out: p.out, cfg: p.cfg}
	p.templates, p.limits, p.idle = &templates.Set{}, &limits{}, idle.Jobs{}
	p.warnings = &warnings{}
	p.jobs = &jobs{
		byUUID: all.ByUUID, next: 1, owned: quota.New(), arrays: array.NewSet(), depends: depend.NewSet(),
		templates: p.templates, limits: p.limits, warnings: p.warnings, idle: p.idle, queue: p.queue, ledger: p.ledger, out: p.out, cfg: p.cfg, intern: p.intern,
	}
	p.attempts = &attempts{jobs: p.jobs, nodes: p.nodes, queue: p.queue, ledger: p.ledger, out: p.out, cfg: p.cfg}
	p.arrays = &arrays{Set: p.jobs.arrays, jobs: p.jobs, attempts: p.attempts}
	p.depends = &depends{Set: p.jobs.depends, jobs: p.jobs, arrays: p.arrays}
	return c, nil
}

// View takes a snapshot. Only the owner may call it, and may publish it only
// when the records of all steps before are durable.
func (c *Controller) View(now sched.Time) *state.View {
	return &state.View{Now: now, Nodes: c.nodes.list.Snapshot(), Plan: c.queue.plan, Windows: c.queue.windows, Billing: c.cfg.Accounting, Jobs: c.jobs.table.Snapshot(), Next: c.jobs.next}
}

// Left is what who leads no more follows on with, once this controller has decided its last: see standby.Of.
func (c *Controller) Left(v *state.View) (jobs *standby.Jobs, unread []job.Number, err error) {
	return standby.Of(v, c.intern)
}

// Days is what the ledger has not closed yet, as of now. Only the owner may call
// it.
func (c *Controller) Days(now sched.Time) []accounting.Day { return c.ledger.Days(int64(now)) }

// Terms is the share tree. Only the owner may call it.
func (c *Controller) Terms(now sched.Time) []accounting.Term { return c.ledger.Terms(int64(now)) }

// Ledger is a copy of the accounts, for readers. Only the owner may call it.
func (c *Controller) Ledger() *accounting.Ledger { return c.ledger.Copy() }

// Check verifies every invariant that holds between steps. Tests and the
// simulator call it after each step; it costs O(jobs).
func (c *Controller) Check() error {
	return errors.Join(
		c.queue.check(c.jobs), c.ledger.Check(c.jobs.charges()), c.attempts.check(), c.jobs.check(), c.nodes.check(c.jobs),
		c.limits.check(c.jobs), c.warnings.check(c.jobs), c.idle.Check(&c.jobs.table), c.templates.Check(&c.jobs.table),
		c.depends.Check(&c.jobs.table), c.arrays.Check(&c.jobs.table),
	)
}
