package sched

import (
	"slices"

	"gbatch/sched/nodes"
)

// spot is a place for one rank.
type spot struct {
	node  *nodes.Node
	gpus  nodes.GPUSet
	level int // of closeness of the GPUs, 0 the best

	shape *nodes.Shape // of the rank there, where it is not that of the job's kind
}

// of is the kind as the rank at a spot has it.
func (kind *jobKind) of(shape *nodes.Shape) *jobKind {
	if shape == nil || shape == kind.Shape {
		return kind
	}
	one := *kind
	one.Shape = shape
	return &one
}

// find looks for places for all ranks of a job of the kind, now, such that no
// reservation is delayed and no window is entered. It returns nil if there are
// none.
func (r *round) find(kind *jobKind) []spot {
	if r.calendar.licensed(kind, r.now) > r.now {
		return nil
	}
	return r.findRoom(kind)
}

// findRoom is find as far as nodes are concerned.
func (r *round) findRoom(kind *jobKind) []spot {
	for _, way := range kind.ways {
		if spots := r.findWay(way); spots != nil {
			return spots
		}
	}
	return nil
}

// findWay is find in one partition.
func (r *round) findWay(kind *jobKind) []spot {
	r.stats.Searches++
	if kind.Shape.Ranks() > 1 {
		return r.findGang(kind)
	}
	var best spot
	var bestCost cost
	count, value := 0, int64(-1)
	most := r.policy.Candidates
	if most == 0 || r.placement.exhaustive {
		most = len(r.s.index.Sorted)
	}
	for _, nodeKind := range r.s.index.Order {
		if value >= 0 && nodeKind.Value > value && !r.placement.exhaustive {
			break
		}
		f := kind.Shape.On(nodeKind)
		if !f.Now() || nodeKind.Taking == 0 {
			continue
		}
		r.stats.Visited += nodeKind.Each(kind.Shape, func(n *nodes.Node) bool {
			avail, ok := r.roomNow(n, kind, f)
			if !ok {
				return true
			}
			sp := r.spotOn(n, kind, avail)
			if c := r.placement.cost(r, kind, sp); count == 0 || c.less(bestCost) {
				best, bestCost = sp, c
			}
			count++
			value = nodeKind.Value
			return count < most
		})
	}
	if count == 0 {
		return nil
	}
	return []spot{best}
}

// roomNow is the GPUs that a rank of the kind can have on the node from now on,
// and whether there is enough of everything.
func (r *round) roomNow(n *nodes.Node, kind *jobKind, f nodes.Fit) (nodes.GPUSet, bool) {
	if len(n.Windows) > 0 {
		if n.Closed(&kind.Request, r.now) != nil {
			return nodes.GPUSet{}, false
		}
		f.GPUs = f.GPUs.AndNot(n.Kept(&kind.Request, r.now))
	}
	if l := &r.calendar.lines[n.No]; len(l.Booked) > 0 {
		avail, _, ok := l.Room(n, &kind.Request, r.now, r.now+kind.predicted)
		return avail, ok
	}
	return n.Room(kind.Shape, f)
}

// spotOn chooses GPUs out of those that are available.
func (r *round) spotOn(n *nodes.Node, kind *jobKind, avail nodes.GPUSet) spot {
	shape := kind.Shape
	switch {
	case shape.Whole():
		return spot{node: n, gpus: n.Usable}
	case shape.Share():
		return r.placement.share(r, kind, n, avail)
	}
	gpus, level := n.Kind.Pick(avail, shape.WholeGPUs())
	return spot{node: n, gpus: gpus, level: level}
}

// findGang looks for a node for each rank: of one kind, under one switch and on
// the nodes that suit best, as far as that is possible.
func (r *round) findGang(kind *jobKind) []spot {
	if len(kind.Shape.Groups) > 0 {
		return r.findGroups(kind)
	}
	found := r.findAlike(kind)
	if kind.Shape.Rest == nil || found == nil {
		return found
	}
	rest := r.findRest(kind, found)
	if rest == nil {
		return nil
	}
	return append(slices.Clip(found), *rest)
}

// findRest finds a place for the rank with fewer GPUs: of the other nodes the
// one with the most free, by name where they are alike. That is what the request
// says (Shape.RestMilliGPU), so no placement is asked which node it is; it is
// asked which GPUs.
func (r *round) findRest(kind *jobKind, taken []spot) *spot {
	small := kind.of(kind.Shape.Rest)
	var best *nodes.Node
	var avail nodes.GPUSet
	for _, n := range r.s.index.Sorted {
		f := small.Shape.On(n.Kind)
		if !f.Now() || !n.TakesJobs() || !small.Shape.Named(n) || slices.ContainsFunc(taken, func(sp spot) bool { return sp.node == n }) {
			continue
		}
		if a, ok := r.roomNow(n, small, f); ok && (best == nil || a.Count() > avail.Count()) {
			best, avail = n, a
		}
	}
	if best == nil {
		return nil
	}
	sp := r.spotOn(best, small, avail)
	sp.shape = small.Shape
	return &sp
}

// findAlike finds places for the ranks that are alike.
func (r *round) findAlike(kind *jobKind) []spot {
	ranks := kind.Shape.Alike()
	most := len(r.s.index.Sorted) // of one kind that are compared, unless a switch makes them differ
	if c := r.policy.Candidates; c > 0 && !r.placement.exhaustive {
		most = ranks + c
	}
	var all []spot
	for _, nodeKind := range r.s.index.Order {
		f := kind.Shape.On(nodeKind)
		if !f.Now() || nodeKind.Taking == 0 {
			continue
		}
		var found []spot
		r.stats.Visited += nodeKind.Each(kind.Shape, func(n *nodes.Node) bool {
			if avail, ok := r.roomNow(n, kind, f); ok {
				found = append(found, r.spotOn(n, kind, avail))
			}
			return len(found) < most || nodeKind.Switched
		})
		if len(found) >= ranks {
			return r.closest(kind, found, ranks)
		}
		all = append(all, found...)
	}
	if len(all) < ranks {
		return nil
	}
	return r.closest(kind, all, ranks)
}

// closest chooses a spot for each rank: the smallest switch that has enough, or
// else the largest ones.
func (r *round) closest(kind *jobKind, found []spot, ranks int) []spot {
	costs := make(map[*nodes.Node]cost, len(found))
	under := map[string]int{}
	for _, sp := range found {
		costs[sp.node] = r.placement.cost(r, kind, sp)
		under[sp.node.Switch]++
	}
	class := func(sp spot) int { // order of its switch: exact ones first, then the larger
		if c := under[sp.node.Switch]; c >= ranks {
			return c
		} else {
			return 1<<30 - c
		}
	}
	slices.SortStableFunc(found, func(a, b spot) int {
		if d := class(a) - class(b); d != 0 {
			return d
		}
		if a.node.Switch != b.node.Switch {
			if a.node.Switch < b.node.Switch {
				return -1
			}
			return 1
		}
		ca, cb := costs[a.node], costs[b.node]
		return slices.Compare(ca[:], cb[:])
	})
	return found[:ranks]
}
