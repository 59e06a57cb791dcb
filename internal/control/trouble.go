package control

import (
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// A node on which jobs fail by no fault of their own would take one after the
// other, since it is always the one that is free. After failures of several
// jobs in a row it gets no new ones for a while, which doubles. What a user
// does wrong never counts: those failures have reasons of another class.

const (
	troubleJobs  = 3 // different jobs in a row
	firstPenalty = sched.Minute
	mostPenalty  = sched.Hour
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
		n.Trouble = troubleWith(n.Trouble, t.out.now, suspect, exitText(r))
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

func troubleWith(t *state.Trouble, now sched.Time, n job.Number, text string) *state.Trouble {
	out := state.Trouble{}
	if t != nil {
		out = *t
	}
	if !slices.Contains(out.Jobs, n) {
		out.Jobs = append(slices.Clip(out.Jobs), n)
		out.Jobs = out.Jobs[max(len(out.Jobs)-troubleJobs, 0):]
	} else if t.Until > 0 || t.Times == 0 {
		return t
	}
	if out.Until > 0 || len(out.Jobs) < troubleJobs {
		return &out
	}
	span := min(firstPenalty<<min(out.Times, 10), mostPenalty)
	out.Times++
	out.Until = now + span
	out.Why = fmt.Sprintf("%d jobs in a row failed by no fault of their own, the last with: %s; no new jobs for %s", len(out.Jobs), text, job.Duration(span/sched.Second))
	return &out
}

// endPenalties gives nodes jobs again when their time is over. One more failure
// suffices then for the next penalty.
func (t *nodes) endPenalties() {
	for _, n := range t.list {
		if p := n.Penalty(); p > 0 && p <= t.out.now {
			v, again := *n, *n.Trouble
			again.Until, again.Why = 0, ""
			v.Trouble = &again
			t.set(v)
		}
	}
}
