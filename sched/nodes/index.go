package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gbatch/sched/spec"
)

// Index is all nodes by name, by kind and by what is free on them, with the
// shapes that were asked for and the windows over the nodes. Everything that it
// holds is current but for Sorted and the sets of the kinds after nodes came or
// went: Refresh brings those up to date.
type Index struct {
	Nodes   map[string]*Node
	Sorted  []*Node          // all nodes by name, also those that are gone
	kinds   map[string]*Kind // by key
	Order   []*Kind          // by value, then key
	Shapes  map[string]*Shape
	Windows map[string]*spec.Window
	times   map[string][]*spec.Window // each with one of its times

	values map[string]int64       // of GPU models, see SetValues
	known  map[*spec.Shape]*Shape // of requests that were interned before, which do not change
	stale  bool                   // nodes came or went
}

// New makes an empty one.
func New() *Index {
	return &Index{Nodes: map[string]*Node{}, kinds: map[string]*Kind{}, Shapes: map[string]*Shape{}, Windows: map[string]*spec.Window{}, times: map[string][]*spec.Window{}, known: map[*spec.Shape]*Shape{}}
}

// Set adds a node or replaces what is known of it. Jobs on it keep what they
// hold: GPUs that it no longer reports stay charged to them and come back with
// the node's next report that names them.
func (ix *Index) Set(in spec.Node) error {
	if err := in.Validate(); err != nil {
		return fmt.Errorf("set node: %w", err)
	}
	in.GPUs, in.Features, in.Partitions, in.Storage = slices.Clone(in.GPUs), slices.Clone(in.Features), slices.Clone(in.Partitions), slices.Clone(in.Storage)
	old := ix.Nodes[in.Name]
	if old == nil {
		ix.addNode(in)
		return nil
	}
	ranks := old.Ranks
	ix.dropNode(old)
	n := ix.addNode(in)
	for _, rank := range ranks {
		rank.Node = n
		n.bind(rank)
		n.Take(rank)
	}
	return nil
}

// Remove forgets a node, or as much of it as no job holds. It reports
// whether it was known.
func (ix *Index) Remove(name string) bool {
	n := ix.Nodes[name]
	if n == nil || n.Gone {
		return false
	}
	if n.Idle() {
		ix.dropNode(n)
		return true
	}
	gone := n.Node
	gone.State, gone.Reason = spec.Down, "removed"
	ranks := n.Ranks
	ix.dropNode(n)
	n = ix.addNode(gone)
	n.Gone = true
	for _, rank := range ranks {
		rank.Node = n
		n.Take(rank)
	}
	return true
}

func (ix *Index) addNode(in spec.Node) *Node {
	n := &Node{Node: in, Folded: spec.Fold(in.Name), CPUFree: in.MilliCPU, MemFree: in.MemMiB, DiskFree: in.DiskMiB, Used: make([]int32, len(in.GPUs))}
	for i, g := range in.GPUs {
		if !g.Drained {
			n.Usable.Add(i)
		}
		n.mark(i)
	}
	key := kindKey(&in)
	kind := ix.kinds[key]
	if kind == nil {
		kind = ix.newKind(key, &n.Node)
	}
	n.Kind = kind
	kind.Nodes = append(kind.Nodes, n)
	kind.stale = true
	ix.Nodes[in.Name] = n
	ix.stale = true
	ix.cover(n)
	return n
}

func (ix *Index) dropNode(n *Node) {
	kind := n.Kind
	kind.Nodes = slices.DeleteFunc(kind.Nodes, func(other *Node) bool { return other == n })
	kind.stale = true
	if len(kind.Nodes) == 0 {
		ix.dropKind(kind)
	}
	delete(ix.Nodes, n.Name)
	ix.stale = true
}

// Refresh brings the indexes up to date after nodes changed.
func (ix *Index) Refresh() {
	if ix.stale {
		ix.stale = false
		ix.Sorted = slices.SortedFunc(maps.Values(ix.Nodes), func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
		for i, n := range ix.Sorted {
			n.No = i
		}
	}
	for _, kind := range ix.Order {
		kind.refresh()
	}
}
