package control

import (
	"gbatch/internal/control/fit"
	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// countTrouble takes in how a rank has ended on a node, and for which job it
// counts.
func (t *nodes) countTrouble(r state.Rank, suspect job.Number) {
	if r.Exit == nil || r.Exit.Reason == job.NodeFail || t.get(r.Alloc.Node) == nil {
		return // lost contact is a state of its own
	}
	n := *t.get(r.Alloc.Node)
	switch {
	case r.Exit.Reason.Class() == job.Infra:
		n.Trouble = fit.Failed(n.Trouble, t.out.Now, suspect, ranks.Exit(r))
	case r.Exit.StartedMS > 0 && n.Trouble != nil:
		n.Trouble = nil // a program ran there
	default:
		return
	}
	t.set(n)
}

// suspect is whom a failure counts for once: tasks of an array of which none
// has run yet may all fail for the array's sake.
func (t *jobs) suspect(j *state.Job) job.Number {
	if p := t.get(j.Parent); p != nil && p.First == 0 {
		return p.Number
	}
	return j.Number
}

// endPenalties gives nodes jobs again when their time is over. One more failure
// suffices then for the next penalty.
func (t *nodes) endPenalties() {
	for n := range t.list.All() {
		if p := n.Penalty(); p > 0 && p <= t.out.Now {
			v, again := *n, *n.Trouble
			again.Until, again.Why = 0, ""
			v.Trouble = &again
			t.set(v)
		}
	}
}
