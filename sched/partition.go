package sched

import (
	"fmt"
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/words"
)

// A job that names several partitions runs as a whole in one of them. To placement
// it is a kind for each, which are tried in their order; that one of them is down
// leaves the others. The job has one place in the queue all the same.

// waysOf are the kinds that one is tried as.
func (s *State) waysOf(kind *jobKind) (out []*jobKind) {
	for _, shape := range kind.Shape.Ways {
		switch {
		case s.down(shape):
		case shape == kind.Shape:
			out = append(out, kind)
		default:
			way := &jobKind{Request: kind.Request, outlook: kind.outlook}
			way.Shape, way.ways = shape, []*jobKind{way}
			out = append(out, way)
		}
	}
	return out
}

// down says whether no partition of a shape lets jobs start.
func (s *State) down(shape *nodes.Shape) bool {
	up := func(name string) bool { return !s.policy.Partitions[name].Down }
	return len(shape.Partitions) > 0 && !slices.ContainsFunc(shape.Partitions, up)
}

// downText says so.
func (s *State) downText(shape *nodes.Shape) string {
	text := words.Names("partition", shape.Partitions) + " let no job start"
	if len(shape.Partitions) == 1 {
		text = words.Names("partition", shape.Partitions) + " is down"
		if why := s.policy.Partitions[shape.Partitions[0]].Reason; why != "" {
			text += ": " + why
		}
	}
	return text
}

// partitionPoints are those of the partition of most priority that lets jobs start.
func (s *State) partitionPoints(shape *nodes.Shape) (points int64) {
	for _, name := range shape.Partitions {
		if p := s.policy.Partitions[name]; !p.Down {
			points = max(points, s.policy.Weights.Partition*p.Priority/1000)
		}
	}
	return points
}

// partitionAt is the partition that a job of the kind starts in at these spots; ""
// if it names none.
func (kind *jobKind) partitionAt(spots []spot) string {
	for _, way := range kind.ways {
		in := way.Shape.Partitions
		if len(in) > 0 && !slices.ContainsFunc(spots, func(sp spot) bool { return !slices.Contains(sp.node.Partitions, in[0]) }) {
			return in[0]
		}
	}
	return ""
}

// has says whether all of the nodes, one for each rank, will do for a job of the kind, together.
func (kind *jobKind) has(list []*nodes.Node) bool {
	return slices.ContainsFunc(kind.ways, func(way *jobKind) bool {
		for i, n := range list {
			if shape := way.Shape.OfRank(i); !shape.On(n.Kind).Now() || !shape.Named(n) {
				return false
			}
		}
		return true
	})
}

// bestWay is what keeps a kind from starting in the partition where it is nearest
// to that.
func (r *round) bestWay(kind *jobKind) (best blocked, at *jobKind) {
	if len(kind.ways) == 0 {
		return blocked{code: CodePartition, never: r.s.downText(kind.Shape)}, kind
	}
	for _, way := range kind.ways {
		b := blocked{Counts: r.s.index.Count(&way.Request, r.now)}
		switch ranks := way.Shape.Ranks(); {
		case b.Nodes < ranks:
			b.code, b.never = CodeNever, r.s.index.NeverText(way.Shape, b.Nodes)
		case b.Room >= ranks:
			b.code = CodePriority
		case b.Room+b.Shut >= ranks:
			b.code = CodeReservation
		default:
			b.code = CodeResources
		}
		if at == nil || codeOrder(b.code) > codeOrder(best.code) {
			best, at = b, way
		}
	}
	if best.code == CodeNever && len(kind.ways) > 1 {
		best.never = fmt.Sprintf("in none of its partitions: %s, as in %s", best.never, at.Shape.Partitions[0])
	}
	return best, at
}
