package sched

import (
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/spec"
)

// failure is a request for which there is no room in this round, and so none
// for a request that wants at least as much for at least as long.
type failure struct {
	milliGPU, cpu, mem int64
	limit, predicted   Time
	access             string
	kind               *jobKind
	why                *blocked
}

func (f failure) covers(k *jobKind) bool {
	x := k.Shape
	return f.milliGPU <= x.MilliGPU && f.cpu <= x.MilliCPU && f.mem <= x.MemMiB &&
		f.limit <= k.Limit && f.predicted <= k.predicted && f.access == k.access
}

// maxFailures bounds how many failures are remembered per set of constraints.
const maxFailures = 64

// findNew is find, but for what is known to fail.
func (r *round) findNew(k *jobKind) []spot {
	if r.promises != nil { // what is promised differs from job to job
		return r.find(k)
	}
	known := r.failed[k.Shape.Bounds]
	for _, f := range known {
		if f.covers(k) {
			return nil
		}
	}
	if spots := r.find(k); spots != nil {
		return spots
	}
	if len(known) < maxFailures {
		x := k.Shape
		r.failed[x.Bounds] = append(known, failure{milliGPU: x.MilliGPU, cpu: x.MilliCPU, mem: x.MemMiB, limit: k.Limit, predicted: k.predicted, access: k.access, kind: k})
	}
	return nil
}

// earliest is the first time, from the one given, at which there is room for
// all ranks for the whole expected run time, and where. Without spots there is
// no such time.
func (r *round) earliest(k *jobKind, from Time) (Time, []spot) {
	r.stats.Planned++
	ranks := k.Shape.Ranks()
	var nodes []*nodes.Node
	var starts []Time
	for _, nk := range r.s.index.Order {
		if f := k.Shape.On(nk); !f.OK {
			continue
		}
		for _, n := range nk.Nodes {
			if !n.Open() || !k.Shape.Named(n) {
				continue
			}
			if t := r.earliestOn(n, k, from); t < Never {
				nodes, starts = append(nodes, n), append(starts, t)
			}
		}
	}
	if len(nodes) < ranks {
		return 0, nil
	}
	for {
		at := nth(starts, ranks)
		if at >= Never {
			return 0, nil
		}
		again := false
		for i, n := range nodes {
			if starts[i] >= at {
				continue
			}
			if t := r.earliestOn(n, k, at); t != starts[i] {
				starts[i] = t
				again = again || t > at
			}
		}
		if again {
			continue
		}
		var found []spot
		for i, n := range nodes {
			if starts[i] != at {
				continue
			}
			avail, _, ok := r.timeline(n).room(n, k, at, at+k.predicted)
			if !ok {
				panic("sched: planned start without room on " + n.Name)
			}
			found = append(found, r.futureSpot(n, k, avail, at))
		}
		if ranks == 1 {
			return at, r.cheapest(k, found)
		}
		return at, r.closest(k, found, k.Shape.Ranks())
	}
}

// nth is the n-th lowest of the times.
func nth(times []Time, n int) Time {
	if n == 1 {
		return slices.Min(times)
	}
	sorted := slices.Clone(times)
	slices.Sort(sorted)
	return sorted[n-1]
}

// earliestOn is the first time at which a rank has room on the node; Never if
// there is none.
func (r *round) earliestOn(n *nodes.Node, k *jobKind, from Time) Time {
	l := r.timeline(n)
	i := l.index(from)
	for at := from; at < spec.MaxTime; {
		if w := n.Closed(&k.Request, at); w != nil {
			at = w.End
			i = l.index(at)
			continue
		}
		_, short, ok := l.room(n, k, at, at+k.predicted)
		if ok {
			return at
		}
		next := Never
		if short <= i { // nothing rules a start between two points out
			next = n.Reopens(&k.Request, at)
		}
		if i = max(short, i) + 1; i < len(l.points) && l.points[i].at <= next {
			at = l.points[i].at
		} else {
			at = next
			i = l.index(at)
		}
	}
	return Never
}

// futureSpot chooses GPUs for a planned start: those that become free last, so
// that the others can be used until then.
func (r *round) futureSpot(n *nodes.Node, k *jobKind, avail nodes.GPUSet, at Time) spot {
	x := k.Shape
	if x.Whole() || x.Share() || avail.Count() == x.WholeGPUs() {
		return r.spotOn(n, k, avail)
	}
	late := avail
	l := r.timeline(n)
	for i := l.index(at); i >= 0; i-- {
		busy := late.AndNot(l.points[i].free)
		if busy.Count() >= x.WholeGPUs() {
			return r.spotOn(n, k, busy)
		}
		if i == 0 || !busy.Empty() {
			break
		}
	}
	return r.spotOn(n, k, avail)
}

func (r *round) cheapest(k *jobKind, found []spot) []spot {
	best := 0
	for i := range found {
		if i > 0 && r.placement.cost(r, k, found[i]).less(r.placement.cost(r, k, found[best])) {
			best = i
		}
	}
	return found[best : best+1]
}
