package sched

import (
	"slices"

	"gbatch/sched/nodes"
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

func (f failure) covers(kind *jobKind) bool {
	shape := kind.Shape
	return f.milliGPU <= shape.MilliGPU && f.cpu <= shape.MilliCPU && f.mem <= shape.MemMiB &&
		f.limit <= kind.Limit && f.predicted <= kind.predicted && f.access == kind.access
}

// maxFailures bounds how many failures are remembered per set of constraints.
const maxFailures = 64

// findNew is find, but for what is known to fail.
func (r *round) findNew(kind *jobKind) []spot {
	if r.promises != nil { // what is promised differs from job to job
		return r.find(kind)
	}
	known := r.failed[kind.Shape.Bounds]
	for _, f := range known {
		if f.covers(kind) {
			return nil
		}
	}
	if spots := r.find(kind); spots != nil {
		return spots
	}
	if len(known) < maxFailures {
		shape := kind.Shape
		r.failed[shape.Bounds] = append(known, failure{milliGPU: shape.MilliGPU, cpu: shape.MilliCPU, mem: shape.MemMiB, limit: kind.Limit, predicted: kind.predicted, access: kind.access, kind: kind})
	}
	return nil
}

// earliest is the first time, from the one given, at which there are room for
// all ranks and licences for the whole expected run time, and where. Without spots
// there is no such time.
func (r *round) earliest(kind *jobKind, from Time) (Time, []spot) {
	for from < Never {
		at, spots := r.earliestRoom(kind, from)
		if spots == nil {
			break
		}
		if from = r.calendar.licensed(kind, at); from == at {
			return at, spots
		}
	}
	return 0, nil
}

// earliestRoom is earliest as far as nodes are concerned.
func (r *round) earliestRoom(kind *jobKind, from Time) (Time, []spot) {
	var first []spot
	soonest := Never
	for _, way := range kind.ways {
		if at, spots := r.earliestWay(way, from); spots != nil && at < soonest {
			soonest, first = at, spots
		}
	}
	if first == nil {
		return 0, nil
	}
	return soonest, first
}

// earliestWay is earliest in one partition.
func (r *round) earliestWay(kind *jobKind, from Time) (Time, []spot) {
	r.stats.Planned++
	ranks := kind.Shape.Ranks()
	var nodes []*nodes.Node
	var starts []Time
	for _, nodeKind := range r.s.index.Order {
		if f := kind.Shape.On(nodeKind); !f.Now() {
			continue
		}
		for _, n := range nodeKind.Nodes {
			if !n.Open() || !kind.Shape.Named(n) {
				continue
			}
			if t := r.calendar.earliestOn(n, kind, from); t < Never {
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
			if t := r.calendar.earliestOn(n, kind, at); t != starts[i] {
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
			avail, _, ok := r.calendar.timeline(n).room(n, kind, at, at+kind.predicted)
			if !ok {
				panic("sched: planned start without room on " + n.Name)
			}
			found = append(found, r.futureSpot(n, kind, avail, at))
		}
		if ranks == 1 {
			return at, r.cheapest(kind, found)
		}
		return at, r.closest(kind, found, kind.Shape.Ranks())
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

// futureSpot chooses GPUs for a planned start: those that become free last, so
// that the others can be used until then.
func (r *round) futureSpot(n *nodes.Node, kind *jobKind, avail nodes.GPUSet, at Time) spot {
	shape := kind.Shape
	if shape.Whole() || shape.Share() || avail.Count() == shape.WholeGPUs() {
		return r.spotOn(n, kind, avail)
	}
	late := avail
	l := r.calendar.timeline(n)
	for i := l.index(at); i >= 0; i-- {
		busy := late.AndNot(l.points[i].free)
		if busy.Count() >= shape.WholeGPUs() {
			return r.spotOn(n, kind, busy)
		}
		if i == 0 || !busy.Empty() {
			break
		}
	}
	return r.spotOn(n, kind, avail)
}

func (r *round) cheapest(kind *jobKind, found []spot) []spot {
	best := 0
	for i := range found {
		if i > 0 && r.placement.cost(r, kind, found[i]).less(r.placement.cost(r, kind, found[best])) {
			best = i
		}
	}
	return found[best : best+1]
}
