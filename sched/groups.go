package sched

import (
	"slices"

	"gbatch/sched/nodes"
)

// Ranks that are not alike look for nodes group by group. Each group's nodes are as near to
// each other as they can be; which node is whose is decided for all groups together, so that
// none takes the only one that another could have.

// groups are the kind as the ranks of each group have it.
func (kind *jobKind) groups() (out []*jobKind) {
	for _, shape := range kind.Shape.Groups {
		out = append(out, kind.of(shape))
	}
	return out
}

// findGroups is find for ranks that are not alike.
func (r *round) findGroups(kind *jobKind) []spot {
	if kind.Shape.Shares() {
		return r.findShared(kind)
	}
	groups := kind.groups()
	rooms := make([][]spot, len(groups))
	for i, g := range groups {
		for _, nodeKind := range r.s.index.Order {
			f := g.Shape.On(nodeKind)
			if !f.Now() || nodeKind.Taking == 0 {
				continue
			}
			r.stats.Visited += nodeKind.Each(g.Shape, func(n *nodes.Node) bool {
				if avail, ok := r.roomNow(n, g, f); ok {
					rooms[i] = append(rooms[i], r.spotOn(n, g, avail))
				}
				return true
			})
		}
		if len(rooms[i]) < g.Shape.Ranks() {
			return nil
		}
	}
	return r.divide(groups, rooms)
}

// divide gives each group spots of those where it has room, in the order of the ranks; nil
// if there are not enough for all.
func (r *round) divide(groups []*jobKind, rooms [][]spot) []spot {
	shapes, will := make([]*nodes.Shape, len(groups)), make([][]*nodes.Node, len(groups))
	at := make([]map[*nodes.Node]spot, len(groups))
	ranks := 0
	for i, g := range groups {
		if len(rooms[i]) < g.Shape.Ranks() {
			return nil
		}
		r.closest(g, rooms[i], g.Shape.Ranks()) // sorts all of them
		shapes[i], at[i] = g.Shape, map[*nodes.Node]spot{}
		ranks += g.Shape.Ranks()
		for _, sp := range rooms[i] {
			sp.shape = g.Shape
			will[i], at[i][sp.node] = append(will[i], sp.node), sp
		}
	}
	given, placed := nodes.Divide(shapes, will)
	if placed < ranks {
		return nil
	}
	out := make([]spot, 0, ranks)
	for i, list := range given {
		for _, n := range list {
			out = append(out, at[i][n])
		}
	}
	return out
}

// earliestGroups is earliestWay for ranks that are not alike.
func (r *round) earliestGroups(kind *jobKind, from Time) (Time, []spot) {
	if kind.Shape.Shares() {
		return r.earliestShared(kind, from)
	}
	groups := kind.groups()
	lists := make([][]candidate, len(groups))
	at := from
	for i, g := range groups {
		for _, n := range r.s.index.Sorted {
			if !n.TakesJobs() || !g.Shape.On(n.Kind).Now() || !g.Shape.Named(n) {
				continue
			}
			if t := r.calendar.earliestOn(n, g, from); t < Never {
				lists[i] = append(lists[i], candidate{n, t})
			}
		}
		at = max(at, nth(lists[i], g.Shape.Ranks()))
	}
	for at < Never {
		next := Never
		rooms := make([][]spot, len(groups))
		for i, g := range groups {
			for k := range lists[i] {
				c := &lists[i][k]
				if c.at < at {
					c.at = r.calendar.earliestOn(c.node, g, at)
				}
				if c.at > at {
					next = min(next, c.at)
				} else {
					rooms[i] = append(rooms[i], r.spotAt(g, c.node, at))
				}
			}
			slices.SortFunc(rooms[i], func(a, b spot) int { return nodes.ByPlace(a.node, b.node) })
		}
		if spots := r.divide(groups, rooms); spots != nil {
			return at, spots
		}
		at = next
	}
	return 0, nil
}

// spotAt is where a rank goes on a node that has room for it then.
func (r *round) spotAt(kind *jobKind, n *nodes.Node, at Time) spot {
	avail, _, ok := r.calendar.timeline(n).Room(n, &kind.Request, at, at+kind.predicted)
	if !ok {
		panic("sched: planned start without room on " + n.Name)
	}
	return r.futureSpot(n, kind, avail, at)
}
