package nodes

import (
	"cmp"
	"slices"

	"gbatch/sched/spec"
)

// Freeing says, for one round, when nodes can have something free at the earliest:
// when so much of what runs on them has ended. What is planned makes it later,
// never sooner. So a search for the soonest start looks at the nodes in this order,
// and at none after the time that was found.
type Freeing struct {
	now spec.Time
	end func(*Run) spec.Time // when it is reckoned to end

	ends   []freed         // of all nodes, each node's by time, from now on
	first  []int32         // where those of a node begin, by its place
	nodes  []*Node         // that take jobs, by place: the order of the index
	byGPUs map[int][]bound // by number of GPUs
	early  []bool          // by Node.No: jobs on it end sooner than ends says, which holds for it no more
	sooner []*Node         // these
}

// freed is a moment at which jobs on a node end.
type freed struct {
	at   spec.Time
	gpus int32 // free from then on, if nothing else is put there
}

// bound is a time before which a node cannot have room.
type bound struct {
	at    spec.Time
	place int32 // of the node, in Freeing.nodes
}

// NewFreeing makes one. No job's end may come sooner later on, but by Sooner.
func NewFreeing(index *Index, now spec.Time, end func(*Run) spec.Time) *Freeing {
	ends, count := 0, 0
	for _, n := range index.Sorted {
		if n.TakesJobs() {
			ends += 1 + len(n.Ranks)
			count++
		}
	}
	f := &Freeing{now: now, end: end, byGPUs: map[int][]bound{}, early: make([]bool, len(index.Sorted)),
		ends: make([]freed, 0, ends), nodes: make([]*Node, 0, count), first: make([]int32, 0, count+1)}
	for _, kind := range index.Order {
		for _, n := range kind.Nodes {
			if n.TakesJobs() {
				n.place = int32(len(f.nodes))
				f.nodes = append(f.nodes, n)
				f.first = append(f.first, int32(len(f.ends)))
				f.add(n)
			}
		}
	}
	f.first = append(f.first, int32(len(f.ends)))
	return f
}

func (f *Freeing) add(n *Node) {
	begin := len(f.ends)
	f.ends = append(f.ends, freed{f.now, int32(n.Free.Count())})
	for _, rank := range n.Ranks {
		f.ends = append(f.ends, freed{f.end(rank.Run), int32(len(rank.GPUs))})
	}
	own := f.ends[begin:]
	slices.SortFunc(own[1:], func(a, b freed) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(own); i++ {
		own[i].gpus += own[i-1].gpus
	}
}

// Sooner says that jobs on the node end sooner than they were reckoned to.
func (f *Freeing) Sooner(n *Node) {
	if !f.early[n.No] {
		f.early[n.No] = true
		f.sooner = append(f.sooner, n)
	}
}

// Keys of byGPUs that are no number of GPUs.
const (
	anything = -1 // a rank may start beside others at once
	all      = -2 // nothing else may be on the node
)

// of is the nodes with a bound for a rank of the shape, soonest first; of equal ones
// the first of the index.
func (f *Freeing) of(shape *Shape) []bound {
	key := anything
	switch {
	case shape.Whole():
		key = all
	case shape.MilliGPU >= spec.WholeGPU:
		key = shape.Least()
	}
	if list, ok := f.byGPUs[key]; ok {
		return list
	}
	list := make([]bound, 0, len(f.nodes))
	for place := range f.nodes {
		own := f.ends[f.first[place]:f.first[place+1]]
		if at, ok := soonest(own, key); ok {
			list = append(list, bound{at, int32(place)})
		}
	}
	if key != anything {
		slices.SortFunc(list, func(a, b bound) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.place, b.place)) })
	}
	f.byGPUs[key] = list
	return list
}

// soonest is the bound of a node of which this is freed; false: it never has so much.
func soonest(own []freed, key int) (at spec.Time, ok bool) {
	switch key {
	case anything:
		return own[0].at, true
	case all:
		return own[len(own)-1].at, true
	}
	i := slices.IndexFunc(own, func(e freed) bool { return int(e.gpus) >= key })
	if i < 0 {
		return 0, false
	}
	return own[i].at, true
}

// Search goes through the nodes of a shape, soonest first.
type Search struct {
	f     *Freeing
	list  []bound
	given int // how many of f.sooner, which go first as no bound holds for them
}

// Search begins a search for a rank of the shape.
func (f *Freeing) Search(shape *Shape) Search { return Search{f: f, list: f.of(shape)} }

// Next is the next node that may have room at the time or before; nil: there is none.
func (s *Search) Next(until spec.Time) *Node {
	if s.given < len(s.f.sooner) {
		s.given++
		return s.f.sooner[s.given-1]
	}
	for len(s.list) > 0 && s.list[0].at <= until {
		n := s.f.nodes[s.list[0].place]
		s.list = s.list[1:]
		if !s.f.early[n.No] {
			return n
		}
	}
	return nil
}

// ByPlace compares two nodes that take jobs by where the index has them.
func ByPlace(a, b *Node) int { return cmp.Compare(a.place, b.place) }
