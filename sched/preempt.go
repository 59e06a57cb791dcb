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
func lostWork(x *nodes.Run, now Time) int64 {
	var cpu int64
	for _, k := range x.Held {
		cpu += k.MilliCPU
	}
	return max(x.MilliGPU, cpu/16, 1) * int64(max(now-x.Start, 0))
}

// preempt looks for jobs to end so that a blocked job can start within the
// grace that they are given. It reports them, marked as being ended in the rest
// of the round; none if the job would not start sooner by it. Jobs before it may
// have a better place then: they are planned again, since the next round will do
// that, and may not take what is made free for this one.
func (r *round) preempt(k *jobKind, e *entry, at Time, known bool) []Halt {
	lower := r.policy.QOS[r.s.qosOf(e.class.account.qos)].Preempts
	soon := r.now + r.policy.HaltGrace
	if len(lower) == 0 || known && at <= soon || len(r.paid) >= maxPreemptors || r.tries >= maxTries {
		return nil
	}
	r.tries++
	from := len(r.halted)
	if !r.clear(k, lower, soon) {
		r.unhalt(from)
		return nil
	}
	old, ok := r.replan(soon)
	if ok {
		t, spots := r.earliest(k, r.now)
		ok = spots != nil && t <= soon
	}
	if !ok {
		r.unhalt(from)
		r.restore(old)
		return nil
	}
	if r.paid == nil {
		r.paid = map[JobID]bool{}
	}
	r.paid[e.id] = true
	halts := make([]Halt, 0, len(r.halted)-from)
	for _, x := range r.halted[from:] {
		halts = append(halts, Halt{x.Job.ID, e.id, lostWork(x, r.now)})
	}
	slices.SortFunc(halts, func(a, b Halt) int { return cmp.Compare(a.Job, b.Job) })
	return halts
}

// clear marks jobs as being ended until there is a node for each rank.
func (r *round) clear(k *jobKind, lower []string, soon Time) bool {
	taken := map[*nodes.Node]bool{}
	for range k.Shape.Ranks() {
		best, victims, bestLost := (*nodes.Node)(nil), []*nodes.Run(nil), int64(0)
		for _, nk := range r.s.index.Order {
			if !k.Shape.On(nk).OK {
				continue
			}
			for _, n := range nk.Nodes {
				if taken[n] || !n.Open() || !k.Shape.Named(n) {
					continue
				}
				found, lost, ok := r.victims(n, k, lower, soon)
				if ok && (best == nil || lost < bestLost || lost == bestLost && len(found) < len(victims)) {
					best, victims, bestLost = n, found, lost
				}
			}
		}
		if best == nil {
			return false
		}
		taken[best] = true
		r.halt(victims...)
	}
	return true
}

// victims is the jobs on a node with the least work lost whose end lets a rank
// of the kind start there soon.
func (r *round) victims(n *nodes.Node, k *jobKind, lower []string, soon Time) ([]*nodes.Run, int64, bool) {
	if r.earliestOn(n, k, r.now) <= soon {
		return nil, 0, true
	}
	var can []*nodes.Run
	for _, x := range n.Ranks {
		v := x.Run
		if !v.Job.Restartable || v.Halting || !slices.Contains(lower, r.s.qosOf(v.Job.QOS)) || slices.Contains(can, v) {
			continue
		}
		if until := v.Start + v.Job.MinRun; until > r.now {
			r.wake(until)
			continue
		}
		if v.Start < r.now { // and not in this round
			can = append(can, v)
		}
	}
	slices.SortFunc(can, func(a, b *nodes.Run) int {
		return cmp.Or(cmp.Compare(lostWork(a, r.now), lostWork(b, r.now)), cmp.Compare(b.Job.ID, a.Job.ID))
	})
	from, ok := len(r.halted), false
	for _, v := range can {
		r.halt(v)
		if r.earliestOn(n, k, r.now) <= soon {
			ok = true
			break
		}
	}
	var found []*nodes.Run
	if ok {
		found = r.needed(n, k, from, soon)
	}
	r.unhalt(from)
	var lost int64
	for _, v := range found {
		lost += lostWork(v, r.now)
	}
	return found, lost, ok
}

// needed is the jobs marked since from without those that need not end after
// all, the most expensive ones tried first.
func (r *round) needed(n *nodes.Node, k *jobKind, from int, soon Time) []*nodes.Run {
	marked := slices.Clone(r.halted[from:])
	var found []*nodes.Run
	for i := len(marked) - 1; i >= 0; i-- {
		r.unhalt(from)
		r.halt(found...)
		r.halt(marked[:i]...)
		if r.earliestOn(n, k, r.now) > soon {
			found = append(found, marked[i])
		}
	}
	return found
}

func (r *round) halt(jobs ...*nodes.Run) {
	for _, x := range jobs {
		x.Halting = true
		r.halted = append(r.halted, x)
		r.relineAll(x)
	}
}

func (r *round) unhalt(from int) {
	for _, x := range r.halted[from:] {
		x.Halting = false
		r.relineAll(x)
	}
	r.halted = r.halted[:from]
}

func (r *round) relineAll(x *nodes.Run) {
	for _, k := range x.Held {
		r.reline(k.Node)
	}
}
