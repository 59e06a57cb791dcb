package cgroups

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// PickRequest asks for processors.
type PickRequest struct {
	// N is how many logical processors are wanted.
	N int
	// NearNUMA are the nodes to be near, those of the granted GPUs. They are
	// preferred, not required: processors elsewhere are slower but work.
	NearNUMA []int
	// Busy are processors that others have; Reserved are the host's own.
	Busy, Reserved CPUSet
}

// ErrNoCPUs says that there are fewer free processors than asked for.
var ErrNoCPUs = errors.New("not enough free processors")

// Pick chooses N processors and the NUMA nodes that their memory should come
// from. It prefers, in this order: the nodes of NearNUMA; as few nodes as
// possible; free physical cores as a whole, so that no two jobs share one;
// low numbers. Equal requests get equal answers.
//
// The memory nodes are those of the processors that have memory at all, or
// every node with memory if none of them has.
func (t Topology) Pick(r PickRequest) (CPUSet, []int, error) {
	if r.N <= 0 {
		return CPUSet{}, nil, fmt.Errorf("pick processors: want at least 1, asked for %d", r.N)
	}
	free := t.Online().Minus(r.Busy).Minus(r.Reserved)
	if free.Len() < r.N {
		return CPUSet{}, nil, fmt.Errorf("pick %d processors: %w: %d of %d are free", r.N, ErrNoCPUs, free.Len(), len(t.CPUs))
	}
	p := picker{topology: t, free: free, near: r.NearNUMA}
	var picked CPUSet
	for _, node := range p.order(r.N) {
		if picked.Len() == r.N {
			break
		}
		picked = picked.Union(p.take(node, r.N-picked.Len()))
	}
	return picked, t.memsOf(picked), nil
}

// picker holds what one Pick works on.
type picker struct {
	topology Topology
	free     CPUSet
	near     []int
}

// order lists the nodes in the order in which they are used up. On each side,
// near and far, a node that satisfies the whole rest comes first, the
// tightest fit of them, which keeps big nodes whole for big jobs; else the
// nodes with the most free processors, which makes for the fewest nodes.
func (p picker) order(n int) []Node {
	nodes := slices.Clone(p.topology.Nodes)
	slices.SortStableFunc(nodes, func(a, b Node) int {
		return cmp.Or(
			cmp.Compare(p.farness(a), p.farness(b)),
			-cmp.Compare(p.freeOn(a), p.freeOn(b)),
			cmp.Compare(a.ID, b.ID),
		)
	})
	// Walk the order as Pick will, and let a tight fit jump the queue.
	need := n
	for i := range nodes {
		best := -1
		for j := i; j < len(nodes) && p.farness(nodes[j]) == p.farness(nodes[i]); j++ {
			if p.freeOn(nodes[j]) >= need && (best < 0 || p.freeOn(nodes[j]) < p.freeOn(nodes[best])) {
				best = j
			}
		}
		if best >= 0 {
			tight := nodes[best]
			nodes = slices.Insert(slices.Delete(nodes, best, best+1), i, tight)
			break
		}
		need -= p.freeOn(nodes[i])
		if need <= 0 {
			break
		}
	}
	return nodes
}

func (p picker) farness(n Node) int {
	if len(p.near) == 0 || slices.Contains(p.near, n.ID) {
		return 0
	}
	for _, id := range p.near {
		if p.socketOf(id) == p.socketOf(n.ID) {
			return 1 // another part of the same socket
		}
	}
	return 2
}

// socketOf returns the socket of a node's processors, or -1 without any.
func (p picker) socketOf(node int) int {
	for _, c := range p.topology.CPUs {
		if c.Node == node {
			return c.Socket
		}
	}
	return -1 - node
}

func (p picker) freeOn(n Node) int { return p.free.Intersect(n.CPUs).Len() }

// take chooses up to n free processors of one node: whole cores first, then
// single threads, of cores that are shared already before free ones.
func (p picker) take(node Node, n int) CPUSet {
	free := p.free.Intersect(node.CPUs)
	if free.Len() <= n {
		return free
	}
	whole, broken := p.cores(free)
	var out CPUSet
	for _, core := range whole {
		if out.Len()+core.Len() <= n {
			out = out.Union(core)
		}
	}
	rest := append(broken, whole...)
	for _, core := range rest {
		for _, cpu := range core.Minus(out).List() {
			if out.Len() == n {
				return out
			}
			out = out.Union(NewCPUSet(cpu))
		}
	}
	return out
}

// cores groups free processors by physical core, into those that are free as
// a whole and the others, each by their lowest number.
func (p picker) cores(free CPUSet) (whole, broken []CPUSet) {
	size, have := map[int]int{}, map[int]CPUSet{}
	var order []int
	for _, c := range p.topology.CPUs {
		size[c.Core]++
		if !free.Has(c.ID) {
			continue
		}
		if have[c.Core].IsEmpty() {
			order = append(order, c.Core)
		}
		have[c.Core] = have[c.Core].Union(NewCPUSet(c.ID))
	}
	for _, core := range order {
		if have[core].Len() == size[core] {
			whole = append(whole, have[core])
		} else {
			broken = append(broken, have[core])
		}
	}
	return whole, broken
}

func (t Topology) memsOf(cpus CPUSet) []int {
	var mems, all []int
	for _, n := range t.Nodes {
		// A kernel without NUMA tells no memory per node, but has node 0.
		if n.MemoryBytes == 0 && len(t.Nodes) > 1 {
			continue
		}
		all = append(all, n.ID)
		if !n.CPUs.Intersect(cpus).IsEmpty() {
			mems = append(mems, n.ID)
		}
	}
	if len(mems) == 0 {
		return all
	}
	return mems
}
