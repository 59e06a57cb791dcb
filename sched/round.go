package sched

import (
	"slices"

	"gbatch/sched/licenses"
	"gbatch/sched/mix"
	"gbatch/sched/nodes"
	"gbatch/sched/timeline"
)

// round is one decision in the making. It works on the State itself: every
// change is logged, and undone at the end.
type round struct {
	s         *State
	policy    *Policy
	placement *placement
	now       Time

	ranking  ranking  // who goes first
	usage    usage    // what counts against limits
	calendar calendar // what the nodes are expected to have free
	buffers

	log      []*running           // started in trial, to be ended again
	failed   map[string][]failure // by shape.bounds
	promises map[JobID]promise    // in Conservative mode, of jobs not looked at yet
	plan     Plan
	loss     mix.Meter
	stats    *Stats
	reserved int // jobs with a reservation
	queue    roundQueue

	placed     []placing      // the reservations of this round, in order
	preemptors map[JobID]bool // jobs that others are ended for

	tries, exact int
}

func newRound(in Input) *round {
	s := in.State
	s.index.Refresh()
	r := &round{s: s, policy: &s.policy, placement: placementOf(s.policy.Placement), now: in.Now, buffers: s.spare, failed: map[string][]failure{},
		ranking: newRanking(in),
		usage:   usage{now: in.Now, shares: in.Shares, gpuTime: map[*tally]int64{}, planned: map[*tally][]need{}},
		calendar: calendar{policy: &s.policy, now: in.Now, lines: resized(s.spare.lines, len(s.index.Sorted)), ends: s.spare.ends,
			licenses: licenses.Book{Total: s.policy.Licenses, Now: in.Now}},
	}
	r.loss = mix.Meter{Mix: &s.mix, Index: s.index, Policy: s.policy.Mix, Usable: r.placement.usable}
	r.calendar.licenses.Holders = func(yield func([]License, Time)) {
		for _, run := range s.running { // they are added up: order does not matter
			yield(run.Shape.Licenses, r.calendar.expectedEnd(run.Run))
		}
		for _, run := range r.log {
			yield(run.Shape.Licenses, r.calendar.expectedEnd(run.Run))
		}
	}
	r.stats = &r.plan.Stats
	r.plan.now = in.Now
	s.spare = buffers{}
	return r
}

// close undoes everything.
func (r *round) close() {
	for _, run := range slices.Backward(r.log) {
		for _, rank := range run.Held {
			rank.Node.Give(rank)
		}
		for _, t := range run.tallies {
			if t != nil {
				t.running--
				t.milli -= run.MilliGPU
			}
		}
	}
	r.calendar.close()
	r.lines, r.ends = r.calendar.lines, r.calendar.ends
	r.s.spare = r.buffers
}

// buffers are what a round keeps by kind of jobs, by account and by node. They
// say nothing once the round is over; the State keeps their memory for the next.
type buffers struct {
	kinds  []kindQueue       // by jobKind.slot
	queued []*kindQueue      // of these, the ones in the queue
	ranks  []standing        // by account.slot
	lines  []timeline.Line   // by node.no
	ends   []timeline.Ending // see project
}

// resized is the slice with so many elements. What is in them is not said.
func resized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// allocations of a job at these spots.
func (kind *jobKind) allocations(spots []spot) []Allocation {
	out := make([]Allocation, len(spots))
	for i, sp := range spots {
		u := kind.use(sp)
		a := Allocation{Node: sp.node.Name, MilliCPU: u.CPU, MemMiB: u.Mem, DiskMiB: u.Disk}
		for g := u.GPUs.Next(0); g >= 0; g = u.GPUs.Next(g + 1) {
			a.GPUs = append(a.GPUs, GPUShare{UUID: sp.node.GPUs[g].UUID, Milli: int64(u.Milli)})
		}
		out[i] = a
	}
	return out
}

// use is what a rank of the kind takes at the spot.
func (kind *jobKind) use(sp spot) timeline.Use {
	shape := kind.of(sp.shape).Shape
	if shape.Whole() {
		return timeline.Use{CPU: sp.node.MilliCPU, Mem: sp.node.MemMiB, GPUs: sp.gpus, Milli: WholeGPU, Alone: true, Disk: shape.DiskMiB}
	}
	milli := int32(WholeGPU)
	if shape.Share() {
		milli = int32(shape.MilliGPU)
	}
	return timeline.Use{CPU: shape.MilliCPU, Mem: shape.MemOf(sp.node.MemMiB), GPUs: sp.gpus, Milli: milli, Disk: shape.DiskMiB}
}

// milliGPU is the least GPU thousandths that a job of the kind will hold.
func (kind *jobKind) milliGPU() int64 { return kind.Shape.SizeMilli() }

// milliAt is the GPU thousandths that a job of the kind holds at these spots.
func (kind *jobKind) milliAt(spots []spot) int64 {
	var sum int64
	for _, sp := range spots {
		u := kind.use(sp)
		sum += int64(u.GPUs.Count()) * int64(u.Milli)
	}
	return sum
}

// start puts a job on its spots, in trial.
func (r *round) start(kind *jobKind, c *class, e *entry, spots []spot) {
	run := &running{Run: &nodes.Run{Shape: c.shape}}
	c.eachTally(func(t *tally) { run.tallies[t.kind] = t })
	run.Job = Job{ID: e.id, Limit: kind.Limit, Predicted: c.predicted}
	run.Start, run.End = r.now, r.now+kind.Limit
	for i, sp := range spots {
		u := kind.use(sp)
		rank := &nodes.Rank{Run: run.Run, Node: sp.node, No: i, MilliCPU: u.CPU, MemMiB: u.Mem, DiskMiB: u.Disk, Whole: c.shape.Whole()}
		for g := u.GPUs.Next(0); g >= 0; g = u.GPUs.Next(g + 1) {
			rank.GPUs = append(rank.GPUs, nodes.GPUUse{GPU: int32(g), Milli: u.Milli})
			run.MilliGPU += int64(u.Milli)
		}
		run.Held = append(run.Held, rank)
		sp.node.Take(rank)
		if l := &r.calendar.lines[sp.node.No]; l.Made {
			l.Reserve(r.now, r.calendar.expectedEnd(run.Run), u)
		}
	}
	for _, t := range run.tallies {
		if t != nil {
			t.running++
			t.milli += run.MilliGPU
			if r.s.timed {
				r.usage.gpuTime[t] += times(run.MilliGPU, int64(kind.Limit))
			}
		}
	}
	r.calendar.licenses.Take(run.Shape.Licenses, r.calendar.expectedEnd(run.Run))
	r.log = append(r.log, run)
}
