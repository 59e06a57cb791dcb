package sched

import (
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/timeline"
)

// Ranks that may share nodes look for seats all together. No placement is asked which nodes
// these are: they are few, and near each other.

// findShared is find for such ranks: on nodes of one kind if that is possible.
func (r *round) findShared(kind *jobKind) []spot {
	var all []nodes.Spare
	last := 0 // where those of the last kind begin
	for _, nodeKind := range r.s.index.Order {
		if nodeKind.Taking == 0 || !kind.someOn(nodeKind) {
			continue
		}
		last = len(all)
		for _, n := range nodeKind.Nodes {
			if n.TakesJobs() && kind.Shape.Named(n) {
				all = r.calendar.appendSpare(all, n, kind, r.now)
			}
		}
		r.stats.Visited += len(all) - last
		if spots := packed(kind, all[last:]); spots != nil {
			return spots
		}
	}
	if last == 0 {
		return nil // all are of one kind
	}
	return packed(kind, all)
}

// earliestShared is earliestWay for such ranks. It looks at each of the first moments at
// which enough is free in all, and at some of the later ones.
func (r *round) earliestShared(kind *jobKind, from Time) (Time, []spot) {
	var able []*nodes.Node
	var sums timeline.Sums
	for _, nodeKind := range r.s.index.Order {
		for _, n := range nodeKind.Nodes {
			if !n.TakesJobs() || !kind.Shape.Named(n) || !kind.someOn(nodeKind) {
				continue
			}
			able = append(able, n)
			sums.Add(r.calendar.timeline(n))
			for _, w := range n.Windows {
				sums.At(w.End)
			}
		}
	}
	moments := sums.Enough(kind.Shape, from)
	for i, next := 0, 0; i < len(moments); i = next {
		var list []nodes.Spare
		for _, n := range able {
			list = r.calendar.appendSpare(list, n, kind, moments[i])
		}
		if spots := packed(kind, list); spots != nil {
			return moments[i], spots
		}
		if next = i + 1 + i/64; next >= len(moments) && i < len(moments)-1 {
			next = len(moments) - 1
		}
	}
	return 0, nil
}

// someOn says whether a rank of some group may start on nodes of a kind.
func (kind *jobKind) someOn(nodeKind *nodes.Kind) bool {
	return slices.ContainsFunc(kind.Shape.Groups, func(g *nodes.Shape) bool { return g.On(nodeKind).Now() })
}

// appendSpare adds what the kind can have of a node from a moment on.
func (cal *calendar) appendSpare(list []nodes.Spare, n *nodes.Node, kind *jobKind, at Time) []nodes.Spare {
	if n.Closed(&kind.Request, at) != nil {
		return list
	}
	s := n.Spare()
	if l := &cal.lines[n.No]; at > cal.now || l.Made && len(l.Booked) > 0 {
		s = cal.timeline(n).Spare(n, at, at+kind.predicted)
	}
	s.GPUs = s.GPUs.AndNot(n.Kept(&kind.Request, at))
	return append(list, s)
}

// packed is where the ranks go on these nodes; nil if there is no room for all.
func packed(kind *jobKind, list []nodes.Spare) []spot {
	seats := nodes.Pack(kind.Shape, list)
	if seats == nil {
		return nil
	}
	out := make([]spot, len(seats))
	for i, s := range seats {
		out[i] = spot{node: s.Node, gpus: s.GPUs, shape: s.Shape}
	}
	return out
}
