// Package ledger is the accounts as the controller keeps them: what jobs are
// charged as they start and end, the days that are closed, and the shares that
// follow. What accounts are is in accounting; which jobs there are is said by the
// caller. The controller owns the one Ledger.
package ledger

import (
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/control/effects"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Charges is what the ranks of a job's last attempt cost, from its start until
// its end.
func Charges(j *state.Job) []accounting.Charge {
	at := j.Last()
	out := make([]accounting.Charge, 0, len(at.Ranks))
	for _, r := range at.Ranks {
		out = append(out, j.Charge(r, at.End))
	}
	return out
}

// Rules are those in force, which the ledger only reads.
type Rules struct {
	Accounts *accounting.Config
	Policy   *sched.Policy
}

// Ledger is the accounts, and what is known of them until they change.
type Ledger struct {
	*accounting.Ledger
	rollAt sched.Time         // when a day ends that is not closed yet; 0: not known yet
	shares *accounting.Shares // of the last round; nil: none yet, or the rules are others

	rules Rules
	out   *effects.Output
}

// New is a ledger without charges. What it does goes to out.
func New(rules Rules, out *effects.Output) (*Ledger, error) {
	accounts, err := accounting.New(*rules.Accounts)
	if err != nil {
		return nil, fmt.Errorf("accounting: %w", err)
	}
	return &Ledger{Ledger: accounts, rules: rules, out: out}, nil
}

// Charge begins or ends the charge of an attempt, in the step that gives or takes
// its resources. It panics on amounts out of bounds: these come from an
// allocation, which is in bounds.
func (l *Ledger) Charge(j *state.Job, book func(accounting.Charge) error) {
	for _, ch := range Charges(j) {
		if err := book(ch); err != nil {
			panic(err)
		}
	}
}

// Held is what charges come to from their start until their end.
func (l *Ledger) Held(list ...accounting.Charge) (sum accounting.Amount) {
	for _, ch := range list {
		sum = sum.Plus(l.Rate(ch).Over(ch.End - ch.Start))
	}
	return sum
}

// Ended counts a job that is over where it ran last. Neither templates nor arrays
// are counted: their jobs are.
func (l *Ledger) Ended(j *state.Job) {
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

// Record stores what of the ledger is new. Rows and the days that they have
// closed go together: a restart goes on from rows.
func (l *Ledger) Record() {
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

// CloseDays closes the accounts of days that are over, a bounded number each time
// so that no step takes long. It says whether a budget may be whole again.
func (l *Ledger) CloseDays() bool {
	const most = 256
	if l.out.Now < l.rollAt {
		return false
	}
	if !l.Roll(int64(l.out.Now), most) {
		l.rollAt = sched.Time(accounting.RollAt(int64(l.out.Now)))
	}
	return l.anyAccount(func(a accounting.Account) bool { return a.Monthly })
}

// NextClose is when CloseDays has something to do; before its first call, at once.
func (l *Ledger) NextClose() sched.Time { return max(l.rollAt, 1) }

func (l *Ledger) anyAccount(match func(accounting.Account) bool) bool {
	for _, a := range l.rules.Accounts.Tree { // any of them: order does not matter
		if match(a) {
			return true
		}
	}
	return false
}

// SharesOf are worked out only where a decision depends on them: they cost as
// much as there are users. Else they are nil.
func (l *Ledger) SharesOf(now sched.Time) *accounting.Shares {
	if l.rules.Policy.Weights.FairShare == 0 && !l.anyAccount(func(a accounting.Account) bool { return a.Budget > 0 }) {
		return nil
	}
	l.shares = l.Shares(int64(now))
	return l.shares
}

// ForgetShares is for when the rules have changed by which they were worked out.
func (l *Ledger) ForgetShares() { l.shares = nil }

// Budget is the one that binds a project most, as of the last round; nil: none
// does.
func (l *Ledger) Budget(project string) *accounting.Budget {
	if l.shares == nil {
		l.SharesOf(l.out.Now)
	}
	b, ok := l.shares.Budget(project)
	if !ok {
		return nil
	}
	return &b
}

// Loaded makes the ledger agree with what runs at the end of a load. The days that
// ended while no controller ran are closed first thing.
func (l *Ledger) Loaded(running []accounting.Charge) error {
	l.rollAt = l.out.Now
	return l.Rebase(running)
}

// Rebase makes the ledger agree with what runs, under new rules.
func (l *Ledger) Rebase(running []accounting.Charge) error {
	return l.Ledger.Rebase(int64(l.out.Now), running)
}

// Check verifies that all that runs is charged, and nothing else.
func (l *Ledger) Check(running []accounting.Charge) error {
	if err := l.Ledger.Check(running); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}
