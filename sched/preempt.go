package sched

import (
	"cmp"
	"slices"

	"gbatch/sched/nodes"
)

// Preemption ends restartable jobs of a lower qos, past their guaranteed run
// time, for a job of a higher one; only if that job then starts, and those with
// the least work lost first.

// maxPreemptors bounds how many jobs of one round other jobs are ended for, and
// maxTries how many are tried.
const (
	maxPreemptors = 16
	maxTries      = 32
)

// lostWork is what ends with a job: the dominant of its GPU and CPU share, in
// thousandths of a GPU with 16 cores each, times how long it ran.
func lostWork(run *nodes.Run, now Time) int64 {
	var cpu int64
	for _, rank := range run.Held {
		cpu += rank.MilliCPU
	}
	return max(run.MilliGPU, cpu/16, 1) * int64(max(now-run.Start, 0))
}

// preempt looks for jobs to end so that a blocked job can start within the
// grace that they are given. It reports them, marked as being ended in the rest
// of the round; none if the job would not start sooner by it. Jobs before it may
// have a better place then: they are planned again, since the next round will do
// that, and may not take what is made free for this one.
func (r *round) preempt(kind *jobKind, e *entry, at Time, known bool) []Halt {
	lower := r.policy.QOS[r.s.qosOf(e.class.account.qos)].Preempts
	soon := r.now + r.policy.HaltGrace
	if len(lower) == 0 || known && at <= soon || len(r.preemptors) >= maxPreemptors || r.tries >= maxTries {
		return nil
	}
	r.tries++
	from := len(r.calendar.halted)
	cleared := slices.ContainsFunc(kind.ways, func(way *jobKind) bool {
		r.calendar.unhalt(from)
		return r.clear(way, lower, soon)
	})
	if !cleared {
		r.calendar.unhalt(from)
		return nil
	}
	old, ok := r.replan(soon)
	if ok {
		t, spots := r.earliest(kind, r.now)
		ok = spots != nil && t <= soon
	}
	if !ok {
		r.calendar.unhalt(from)
		r.restore(old)
		return nil
	}
	if r.preemptors == nil {
		r.preemptors = map[JobID]bool{}
	}
	r.preemptors[e.id] = true
	halts := make([]Halt, 0, len(r.calendar.halted)-from)
	for _, run := range r.calendar.halted[from:] {
		halts = append(halts, Halt{run.Job.ID, e.id, lostWork(run, r.now)})
	}
	slices.SortFunc(halts, func(a, b Halt) int { return cmp.Compare(a.Job, b.Job) })
	return halts
}

// clear marks jobs as being ended until there is room for each rank.
func (r *round) clear(kind *jobKind, lower []string, soon Time) bool {
	taken, on := map[*nodes.Node]*nodes.Shape{}, map[*nodes.Node]int{} // by ranks before, which may be joined
	perNode := max(kind.Shape.PerNode, 1)
	for i := range kind.Shape.Ranks() {
		kind := kind.of(kind.Shape.OfRank(i))
		best, victims, bestLost := (*nodes.Node)(nil), []*nodes.Run(nil), int64(0)
		for _, nodeKind := range r.s.index.Order {
			if !kind.Shape.On(nodeKind).Now() {
				continue
			}
			for _, n := range nodeKind.Nodes {
				if on[n] >= perNode || on[n] > 0 && n.Apart || !n.TakesJobs() || !kind.Shape.Named(n) {
					continue
				}
				all := kind
				if beside := taken[n]; beside != nil {
					all = kind.of(kind.Shape.Plus(beside))
				}
				found, lost, ok := r.victims(n, all, lower, soon)
				if ok && (best == nil || lost < bestLost || lost == bestLost && len(found) < len(victims)) {
					best, victims, bestLost = n, found, lost
				}
			}
		}
		if best == nil {
			return false
		}
		if on[best]++; taken[best] == nil {
			taken[best] = kind.Shape
		} else {
			taken[best] = kind.Shape.Plus(taken[best])
		}
		r.calendar.halt(victims...)
	}
	return true
}

// victims is the jobs on a node with the least work lost whose end lets a rank
// of the kind start there soon.
func (r *round) victims(n *nodes.Node, kind *jobKind, lower []string, soon Time) ([]*nodes.Run, int64, bool) {
	if r.calendar.earliestOn(n, kind, r.now) <= soon {
		return nil, 0, true
	}
	var can []*nodes.Run
	for _, rank := range n.Ranks {
		run := rank.Run
		if !run.Job.Restartable || run.Halting || !slices.Contains(lower, r.s.qosOf(run.Job.QOS)) || slices.Contains(can, run) {
			continue
		}
		if until := run.Start + run.Job.MinRun; until > r.now {
			r.wake(until)
			continue
		}
		if run.Start < r.now { // and not in this round
			can = append(can, run)
		}
	}
	slices.SortFunc(can, func(a, b *nodes.Run) int {
		return cmp.Or(cmp.Compare(lostWork(a, r.now), lostWork(b, r.now)), cmp.Compare(b.Job.ID, a.Job.ID))
	})
	from, ok := len(r.calendar.halted), false
	for _, run := range can {
		r.calendar.halt(run)
		if r.calendar.earliestOn(n, kind, r.now) <= soon {
			ok = true
			break
		}
	}
	var found []*nodes.Run
	if ok {
		found = r.needed(n, kind, from, soon)
	}
	r.calendar.unhalt(from)
	var lost int64
	for _, run := range found {
		lost += lostWork(run, r.now)
	}
	return found, lost, ok
}

// needed is the jobs marked since from without those that need not end after
// all, the most expensive ones tried first.
func (r *round) needed(n *nodes.Node, kind *jobKind, from int, soon Time) []*nodes.Run {
	marked := slices.Clone(r.calendar.halted[from:])
	var found []*nodes.Run
	for i := len(marked) - 1; i >= 0; i-- {
		r.calendar.unhalt(from)
		r.calendar.halt(found...)
		r.calendar.halt(marked[:i]...)
		if r.calendar.earliestOn(n, kind, r.now) > soon {
			found = append(found, marked[i])
		}
	}
	return found
}
