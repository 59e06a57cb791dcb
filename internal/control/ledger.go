package control

import (
	"gbatch/accounting"
	"gbatch/internal/state"
	"gbatch/sched"
)

// charges is what the ranks of a job's last attempt cost, from its start until
// its end.
func charges(j *state.Job) []accounting.Charge {
	var out []accounting.Charge
	for _, r := range j.Attempt.Ranks {
		out = append(out, j.Charge(r, j.Attempt.End))
	}
	return out
}

// charge begins or ends the charge of an attempt, in the step that gives or
// takes its resources.
func (c *Controller) charge(j *state.Job, book func(accounting.Charge) error) {
	for _, ch := range charges(j) {
		must(book(ch)) // amounts come from an allocation, which is in bounds
	}
}

// held is what charges come to from their start until their end.
func (c *Controller) held(list ...accounting.Charge) (sum accounting.Amount) {
	for _, ch := range list {
		sum = sum.Plus(c.ledger.Rate(ch).Over(ch.End - ch.Start))
	}
	return sum
}

// countEnd counts a job that is over where it ran last. Neither templates nor
// arrays are counted: their jobs are.
func (c *step) countEnd(j *state.Job) {
	if j.Cron != nil || j.Tasks != nil {
		if !c.cfg.NoRecords {
			c.out.record(j.EndRecord())
		}
		return
	}
	at := accounting.Charge{Project: j.Owner.Project, User: j.Owner.User, Cluster: j.Request.Shape.Cluster, Start: int64(c.now), End: int64(c.now)}
	if j.Attempt != nil {
		at.Model, at.Cluster = j.Attempt.Ranks[0].Model, j.Attempt.Ranks[0].Cluster
	}
	c.ledger.CountEnd(at, string(j.State))
	if !c.cfg.NoRecords {
		c.out.record(j.EndRecord())
	}
}

// recordUsage stores what of the ledger is new. Rows and the days that they
// have closed go together: a restart goes on from rows.
func (c *Controller) recordUsage() {
	rows, days := c.ledger.Changed()
	if c.cfg.NoRecords {
		return
	}
	for _, r := range rows {
		c.out.record(state.Record{Kind: state.KindUsage, Name: r.Project + "/" + r.User, Value: state.Encode(r)})
	}
	for _, d := range days {
		c.out.record(state.Record{Kind: state.KindDay, Seq: uint64(d.Day), Name: d.Project + "/" + d.User, Value: state.Encode(d)})
	}
}

// rollDays closes the accounts of days that are over, a bounded number each
// time so that no step takes long. A budget may be whole again then.
func (e Tick) days(c *step) {
	const most = 256
	if c.now < c.ledger.rollAt {
		return
	}
	if !c.ledger.Roll(int64(c.now), most) {
		c.ledger.rollAt = sched.Time(accounting.RollAt(int64(c.now)))
	}
	for _, a := range c.cfg.Accounting.Tree { // any of them: order does not matter
		c.queue.due = c.queue.due || a.Monthly
	}
}

// Days is what the ledger has not closed yet, as of now. Only the owner may call
// it.
func (c *Controller) Days(now sched.Time) []accounting.Day { return c.ledger.Days(int64(now)) }

// Terms is the share tree. Only the owner may call it.
func (c *Controller) Terms(now sched.Time) []accounting.Term { return c.ledger.Terms(int64(now)) }

// Ledger is a copy of the accounts, for readers. Only the owner may call it.
func (c *Controller) Ledger() *accounting.Ledger { return c.ledger.Copy() }

// budget is the one that binds a project most, as of the last round.
func (c *Controller) budget(now sched.Time, project string) *accounting.Budget {
	if c.ledger.shares == nil {
		c.shares(now)
	}
	b, ok := c.ledger.shares.Budget(project)
	if !ok {
		return nil
	}
	return &b
}

// rebase makes the ledger agree with what runs, after a load.
func (c *Controller) rebase(now sched.Time) error {
	var running []accounting.Charge
	for j := range c.jobs.all() {
		if j.State.Active() {
			running = append(running, charges(j)...)
		}
	}
	return c.ledger.Rebase(int64(now), running)
}

// ledger is the accounts, and what is known of them until they change.
type ledger struct {
	*accounting.Ledger
	rollAt sched.Time         // when a day ends that is not closed yet
	shares *accounting.Shares // of the last round; nil: none yet, or the rules are others
}
