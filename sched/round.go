package sched

import (
	"slices"

	"gbatch/accounting"
)

const scale = accounting.Scale

// round is one decision in the making. It works on the State itself: every
// change is logged, and undone at the end.
type round struct {
	s         *State
	policy    *Policy
	placement *placement
	shares    *accounting.Shares
	now       Time

	totalMilli, totalCPU int64 // of all nodes that are known

	log     []*run   // started in trial, to be ended again
	lined   []*node  // with a timeline, to be dropped
	halted  []*run   // marked as being ended, to be unmarked
	counted []*tally // with planned jobs, to be dropped

	failed   map[string][]failure // by shape.bounds
	promises map[JobID]promise    // in Conservative mode, of jobs not looked at yet
	plan     Plan
	mixed    bool     // State.mix is that of this round
	after    after    // scratch
	ends     []ending // scratch
	stats    *Stats
	reserved int // jobs with a reservation
	queue    heads

	placed []placing      // the reservations of this round, in order
	paid   map[JobID]bool // jobs that others are ended for

	tries, exact int
}

func newRound(in Input) *round {
	in.State.refresh()
	r := &round{s: in.State, policy: &in.State.policy, placement: in.State.policy.Placement.value(), shares: in.Shares, now: in.Now, failed: map[string][]failure{}}
	r.stats = &r.plan.Stats
	r.plan.now = in.Now
	for _, k := range r.s.order {
		r.totalMilli += int64(k.known*len(k.sample.GPUs)) * WholeGPU
		r.totalCPU += int64(k.known) * k.sample.MilliCPU
	}
	return r
}

// close undoes everything.
func (r *round) close() {
	for _, x := range slices.Backward(r.log) {
		for _, k := range x.ranks {
			k.node.give(k)
		}
		for _, t := range x.tallies {
			if t != nil {
				t.running--
				t.milli -= x.milli
			}
		}
	}
	for _, n := range r.lined {
		n.points, n.line = n.line.points, nil
	}
	for _, t := range r.counted {
		t.planned = t.planned[:0]
	}
	for _, x := range r.halted {
		x.Halting = false
	}
}

// allocations of a job at these spots.
func (k *jobKind) allocations(spots []spot) []Allocation {
	out := make([]Allocation, len(spots))
	for i, sp := range spots {
		u := k.use(sp)
		a := Allocation{Node: sp.node.Name, MilliCPU: u.cpu, MemMiB: u.mem}
		for g := u.gpus.next(0); g >= 0; g = u.gpus.next(g + 1) {
			a.GPUs = append(a.GPUs, GPUShare{sp.node.GPUs[g].UUID, int64(u.milli)})
		}
		out[i] = a
	}
	return out
}

// use is what a rank of the kind takes at the spot.
func (k *jobKind) use(sp spot) use {
	x := k.shape
	if x.whole() {
		return use{sp.node.MilliCPU, sp.node.MemMiB, sp.gpus, WholeGPU, true}
	}
	milli := int32(WholeGPU)
	if x.share() {
		milli = int32(x.MilliGPU)
	}
	return use{x.MilliCPU, x.MemMiB, sp.gpus, milli, false}
}

// milliGPU is the least GPU thousandths that a job of the kind will hold.
func (k *jobKind) milliGPU() int64 { return k.shape.sizeMilli() }

// milliAt is the GPU thousandths that a job of the kind holds at these spots.
func (k *jobKind) milliAt(spots []spot) int64 {
	var sum int64
	for _, sp := range spots {
		u := k.use(sp)
		sum += int64(u.gpus.count()) * int64(u.milli)
	}
	return sum
}

// start puts a job on its spots, in trial.
func (r *round) start(c *class, e *entry, spots []spot) {
	k := c.kind
	x := &run{shape: c.shape, limit: k.limit}
	c.eachTally(func(t *tally) { x.tallies[t.kind] = t })
	x.Job = Job{ID: e.id, Limit: c.limit, Predicted: c.predicted}
	x.Start, x.End = r.now, r.now+k.limit
	for i, sp := range spots {
		u := k.use(sp)
		t := &rank{run: x, node: sp.node, no: i, cpu: u.cpu, mem: u.mem, whole: c.shape.whole()}
		for g := u.gpus.next(0); g >= 0; g = u.gpus.next(g + 1) {
			t.gpus = append(t.gpus, gpuUse{int32(g), u.milli})
			x.milli += int64(u.milli)
		}
		x.ranks = append(x.ranks, t)
		sp.node.take(t)
		if sp.node.line != nil {
			sp.node.line.reserve(r.now, r.expectedEnd(x), u)
		}
	}
	for _, t := range x.tallies {
		if t != nil {
			t.running++
			t.milli += x.milli
			t.gpuTime += times(x.milli, int64(k.limit))
		}
	}
	r.log = append(r.log, x)
}
