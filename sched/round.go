package sched

import (
	"slices"

	"gbatch/accounting"
	"gbatch/sched/nodes"
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

	log    []*running    // started in trial, to be ended again
	lined  []*nodes.Node // with a timeline
	halted []*nodes.Run  // marked as being ended, to be unmarked

	buffers
	gpuTime    map[*tally]int64  // thousandths x milliseconds that running jobs may still use, if a limit counts it
	planned    map[*tally][]need // of jobs that have a reservation: what is started beside them must leave that
	boostAfter Time              // see patience; 0 until it is worked out

	failed   map[string][]failure // by shape.bounds
	promises map[JobID]promise    // in Conservative mode, of jobs not looked at yet
	plan     Plan
	mixed    bool  // State.mix is that of this round
	after    after // scratch
	stats    *Stats
	reserved int // jobs with a reservation
	queue    roundQueue

	placed []placing      // the reservations of this round, in order
	paid   map[JobID]bool // jobs that others are ended for

	tries, exact int
}

func newRound(in Input) *round {
	s := in.State
	s.index.Refresh()
	r := &round{s: s, buffers: s.spare, gpuTime: map[*tally]int64{}, planned: map[*tally][]need{},
		policy: &s.policy, placement: s.policy.Placement.value(), shares: in.Shares, now: in.Now, failed: map[string][]failure{}}
	r.stats = &r.plan.Stats
	r.plan.now = in.Now
	s.spare = buffers{}
	r.lines = resized(r.lines, len(s.index.Sorted))
	for _, k := range s.index.Order {
		r.totalMilli += int64(k.Known*len(k.Sample.GPUs)) * WholeGPU
		r.totalCPU += int64(k.Known) * k.Sample.MilliCPU
	}
	return r
}

// close undoes everything.
func (r *round) close() {
	for _, x := range slices.Backward(r.log) {
		for _, k := range x.Held {
			k.Node.Give(k)
		}
		for _, t := range x.tallies {
			if t != nil {
				t.running--
				t.milli -= x.MilliGPU
			}
		}
	}
	for _, x := range r.halted {
		x.Halting = false
	}
	for _, n := range r.lined {
		l := &r.lines[n.No]
		l.made, l.booked = false, l.booked[:0]
	}
	r.s.spare = r.buffers
}

// buffers are what a round keeps by kind of jobs, by account and by node. They
// say nothing once the round is over; the State keeps their memory for the next.
type buffers struct {
	kinds  []kindQueue  // by jobKind.slot
	queued []*kindQueue // of these, the ones in the queue
	points []int64      // of fair share, by account.slot
	lines  []timeline   // by node.no
	ends   []ending     // see project
}

// resized is the slice with so many elements. What is in them is not said.
func resized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// allocations of a job at these spots.
func (k *jobKind) allocations(spots []spot) []Allocation {
	out := make([]Allocation, len(spots))
	for i, sp := range spots {
		u := k.use(sp)
		a := Allocation{Node: sp.node.Name, MilliCPU: u.cpu, MemMiB: u.mem}
		for g := u.gpus.Next(0); g >= 0; g = u.gpus.Next(g + 1) {
			a.GPUs = append(a.GPUs, GPUShare{UUID: sp.node.GPUs[g].UUID, Milli: int64(u.milli)})
		}
		out[i] = a
	}
	return out
}

// use is what a rank of the kind takes at the spot.
func (k *jobKind) use(sp spot) use {
	x := k.Shape
	if x.Whole() {
		return use{sp.node.MilliCPU, sp.node.MemMiB, sp.gpus, WholeGPU, true}
	}
	milli := int32(WholeGPU)
	if x.Share() {
		milli = int32(x.MilliGPU)
	}
	return use{x.MilliCPU, x.MemMiB, sp.gpus, milli, false}
}

// milliGPU is the least GPU thousandths that a job of the kind will hold.
func (k *jobKind) milliGPU() int64 { return k.Shape.SizeMilli() }

// milliAt is the GPU thousandths that a job of the kind holds at these spots.
func (k *jobKind) milliAt(spots []spot) int64 {
	var sum int64
	for _, sp := range spots {
		u := k.use(sp)
		sum += int64(u.gpus.Count()) * int64(u.milli)
	}
	return sum
}

// start puts a job on its spots, in trial.
func (r *round) start(c *class, e *entry, spots []spot) {
	k := c.kind
	x := &running{Run: &nodes.Run{Shape: c.shape}}
	c.eachTally(func(t *tally) { x.tallies[t.kind] = t })
	x.Job = Job{ID: e.id, Limit: c.limit, Predicted: c.predicted}
	x.Start, x.End = r.now, r.now+k.Limit
	for i, sp := range spots {
		u := k.use(sp)
		t := &nodes.Rank{Run: x.Run, Node: sp.node, No: i, MilliCPU: u.cpu, MemMiB: u.mem, Whole: c.shape.Whole()}
		for g := u.gpus.Next(0); g >= 0; g = u.gpus.Next(g + 1) {
			t.GPUs = append(t.GPUs, nodes.GPUUse{GPU: int32(g), Milli: u.milli})
			x.MilliGPU += int64(u.milli)
		}
		x.Held = append(x.Held, t)
		sp.node.Take(t)
		if l := &r.lines[sp.node.No]; l.made {
			l.reserve(r.now, r.expectedEnd(x.Run), u)
		}
	}
	for _, t := range x.tallies {
		if t != nil {
			t.running++
			t.milli += x.MilliGPU
			if r.s.timed {
				r.gpuTime[t] += times(x.MilliGPU, int64(k.Limit))
			}
		}
	}
	r.log = append(r.log, x)
}
