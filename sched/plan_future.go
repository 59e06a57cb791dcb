package sched

import (
	"cmp"
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

// earliestWay is earliest in one partition. It asks only nodes that can have room
// before as many as are needed have it.
func (r *round) earliestWay(kind *jobKind, from Time) (Time, []spot) {
	r.stats.Planned++
	if len(kind.Shape.Groups) > 0 {
		return r.earliestGroups(kind, from)
	}
	ranks := kind.Shape.Ranks()
	search := r.calendar.search(r.s.index, kind)
	var list []candidate
	at := Never
	for {
		for n := search.Next(at); n != nil; n = search.Next(at) {
			if !n.TakesJobs() || !kind.Shape.On(n.Kind).Now() || !kind.Shape.Named(n) {
				continue
			}
			if t := r.calendar.earliestOn(n, kind, from); t < Never {
				list = append(list, candidate{n, t})
				if k := len(list); k == ranks || k > ranks && (k-ranks)%32 == 0 || ranks == 1 && t < at {
					at = nth(list, ranks)
				}
			}
		}
		if at = nth(list, ranks); at >= Never {
			return 0, nil
		}
		again := false
		for i, c := range list {
			if c.at < at {
				list[i].at = r.calendar.earliestOn(c.node, kind, at)
				again = again || list[i].at > at
			}
		}
		if !again {
			return at, r.spotsAt(kind, list, at)
		}
		at = nth(list, ranks)
	}
}

// spotsAt is where the ranks of a kind go at a time at which enough nodes have room.
func (r *round) spotsAt(kind *jobKind, list []candidate, at Time) []spot {
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.at != at })
	slices.SortFunc(list, func(a, b candidate) int { return nodes.ByPlace(a.node, b.node) })
	found := make([]spot, 0, len(list))
	for _, c := range list {
		found = append(found, r.spotAt(kind, c.node, at))
	}
	if ranks := kind.Shape.Ranks(); ranks > 1 {
		return r.closest(kind, found, ranks)
	}
	return r.placement.cheapest(r, kind, found)
}

// candidate is a node and when it can have a rank.
type candidate struct {
	node *nodes.Node
	at   Time
}

// nth is the n-th lowest of the times; Never if there are fewer.
func nth(list []candidate, n int) Time {
	if len(list) < n {
		return Never
	}
	if n == 1 {
		return slices.MinFunc(list, compareTimes).at
	}
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, compareTimes)
	return sorted[n-1].at
}

func compareTimes(a, b candidate) int { return cmp.Compare(a.at, b.at) }

// futureSpot chooses GPUs for a planned start: those that become free last, so
// that the others can be used until then.
func (r *round) futureSpot(n *nodes.Node, kind *jobKind, avail nodes.GPUSet, at Time) spot {
	shape := kind.Shape
	if shape.Whole() || shape.Share() || avail.Count() == shape.WholeGPUs() {
		return r.spotOn(n, kind, avail)
	}
	late := avail
	l := r.calendar.timeline(n)
	for i := l.Index(at); i >= 0; i-- {
		busy := late.AndNot(l.Points[i].Free)
		if busy.Count() >= shape.WholeGPUs() {
			return r.spotOn(n, kind, busy)
		}
		if i == 0 || !busy.Empty() {
			break
		}
	}
	return r.spotOn(n, kind, avail)
}

func (p *placement) cheapest(r *round, kind *jobKind, found []spot) []spot {
	best := 0
	for i := range found {
		if i > 0 && p.cost(r, kind, found[i]).less(p.cost(r, kind, found[best])) {
			best = i
		}
	}
	return found[best : best+1]
}
