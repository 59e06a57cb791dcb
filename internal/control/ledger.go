package control

import (
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/control/effects"
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

// ledger is the accounts, and what is known of them until they change.
type ledger struct {
	*accounting.Ledger
	rollAt sched.Time         // when a day ends that is not closed yet
	shares *accounting.Shares // of the last round; nil: none yet, or the rules are others

	out *effects.Output
	cfg *Config
}

// charge begins or ends the charge of an attempt, in the step that gives or
// takes its resources.
func (l *ledger) charge(j *state.Job, book func(accounting.Charge) error) {
	for _, ch := range charges(j) {
		must(book(ch)) // amounts come from an allocation, which is in bounds
	}
}

// held is what charges come to from their start until their end.
func (l *ledger) held(list ...accounting.Charge) (sum accounting.Amount) {
	for _, ch := range list {
		sum = sum.Plus(l.Rate(ch).Over(ch.End - ch.Start))
	}
	return sum
}

// countEnd counts a job that is over where it ran last. Neither templates nor
// arrays are counted: their jobs are.
func (l *ledger) countEnd(j *state.Job) {
	if j.Cron == nil && j.Tasks == nil {
		now := int64(l.out.Now)
		at := accounting.Charge{Project: j.Owner.Project, User: j.Owner.User, Cluster: j.Request.Shape.Cluster, Start: now, End: now}
		if j.Attempt != nil {
			at.Model, at.Cluster = j.Attempt.Ranks[0].Model, j.Attempt.Ranks[0].Cluster
		}
		l.CountEnd(at, string(j.State))
	}
	if !l.out.NoRecords {
		l.out.Store(j.EndRecord())
	}
}

// record stores what of the ledger is new. Rows and the days that they have
// closed go together: a restart goes on from rows.
func (l *ledger) record() {
	rows, days := l.Changed()
	if l.out.NoRecords {
		return
	}
	for _, r := range rows {
		l.out.Record(state.Record{Kind: state.KindUsage, Name: r.Project + "/" + r.User}, r)
	}
	for _, d := range days {
		l.out.Record(state.Record{Kind: state.KindDay, Seq: uint64(d.Day), Name: d.Project + "/" + d.User}, d)
	}
}

// roll closes the accounts of days that are over, a bounded number each time so
// that no step takes long. It says whether a budget may be whole again.
func (l *ledger) roll() bool {
	const most = 256
	if l.out.Now < l.rollAt {
		return false
	}
	if !l.Roll(int64(l.out.Now), most) {
		l.rollAt = sched.Time(accounting.RollAt(int64(l.out.Now)))
	}
	return l.anyAccount(func(a accounting.Account) bool { return a.Monthly })
}

func (l *ledger) anyAccount(match func(accounting.Account) bool) bool {
	for _, a := range l.cfg.Accounting.Tree { // any of them: order does not matter
		if match(a) {
			return true
		}
	}
	return false
}

// sharesOf are worked out only where a decision depends on them: they cost as
// much as there are users.
func (l *ledger) sharesOf(now sched.Time) *accounting.Shares {
	if l.cfg.Policy.Weights.FairShare == 0 && !l.anyAccount(func(a accounting.Account) bool { return a.Budget > 0 }) {
		return nil
	}
	l.shares = l.Shares(int64(now))
	return l.shares
}

// budget is the one that binds a project most, as of the last round.
func (l *ledger) budget(project string) *accounting.Budget {
	if l.shares == nil {
		l.sharesOf(l.out.Now)
	}
	b, ok := l.shares.Budget(project)
	if !ok {
		return nil
	}
	return &b
}

// rebase makes the ledger agree with what runs, after a load or under new rules.
func (l *ledger) rebase(jobs *jobs) error { return l.Rebase(int64(l.out.Now), jobs.charges()) }

// check verifies that all that runs is charged, and nothing else.
func (l *ledger) check(jobs *jobs) error {
	if err := l.Check(jobs.charges()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// charges is what all that runs costs.
func (t *jobs) charges() (running []accounting.Charge) {
	for j := range t.all() {
		if j.State.Active() {
			running = append(running, charges(j)...)
		}
	}
	return running
}

// Days is what the ledger has not closed yet, as of now. Only the owner may call
// it.
func (c *Controller) Days(now sched.Time) []accounting.Day { return c.ledger.Days(int64(now)) }

// Terms is the share tree. Only the owner may call it.
func (c *Controller) Terms(now sched.Time) []accounting.Term { return c.ledger.Terms(int64(now)) }

// Ledger is a copy of the accounts, for readers. Only the owner may call it.
func (c *Controller) Ledger() *accounting.Ledger { return c.ledger.Copy() }
