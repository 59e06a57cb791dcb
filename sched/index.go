package sched

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gbatch/sched/spec"
)

// index is all nodes by name, by kind and by what is free on them, with the
// shapes that were asked for and the windows over the nodes.
type index struct {
	nodes   map[string]*node
	sorted  []*node // all nodes by name, also those that are gone
	kinds   map[string]*nodeKind
	order   []*nodeKind // by value, then key
	shapes  map[string]*shape
	windows map[string]*window

	values    map[string]int64 // of GPU models, see setValues
	lastIn    *spec.Shape      // the request that was interned last, and its shape
	lastShape *shape
	stale     bool // nodes came or went
}

// newIndex makes an empty one.
func newIndex() *index {
	return &index{nodes: map[string]*node{}, kinds: map[string]*nodeKind{}, shapes: map[string]*shape{}, windows: map[string]*window{}}
}

// set adds a node or replaces what is known of it. Jobs on it keep what they
// hold: GPUs that it no longer reports stay charged to them and come back with
// the node's next report that names them.
func (ix *index) set(in spec.Node) error {
	if err := in.Validate(); err != nil {
		return fmt.Errorf("set node: %w", err)
	}
	in.GPUs, in.Features = slices.Clone(in.GPUs), slices.Clone(in.Features)
	old := ix.nodes[in.Name]
	if old == nil {
		ix.addNode(in)
		return nil
	}
	ranks := old.ranks
	ix.dropNode(old)
	n := ix.addNode(in)
	for _, k := range ranks {
		k.node = n
		n.bind(k)
		n.take(k)
	}
	return nil
}

// remove forgets a node, or as much of it as no job holds. It reports
// whether it was known.
func (ix *index) remove(name string) bool {
	n := ix.nodes[name]
	if n == nil || n.gone {
		return false
	}
	if n.idle() {
		ix.dropNode(n)
		return true
	}
	gone := n.Node
	gone.State, gone.Reason = spec.Down, "removed"
	ranks := n.ranks
	ix.dropNode(n)
	n = ix.addNode(gone)
	n.gone = true
	for _, k := range ranks {
		k.node = n
		n.take(k)
	}
	return true
}

func (ix *index) addNode(in spec.Node) *node {
	n := &node{Node: in, folded: spec.Fold(in.Name), cpuFree: in.MilliCPU, memFree: in.MemMiB, used: make([]int32, len(in.GPUs))}
	for i, g := range in.GPUs {
		if !g.Drained {
			n.usable.add(i)
		}
		n.mark(i)
	}
	key := kindKey(&in)
	k := ix.kinds[key]
	if k == nil {
		k = ix.newKind(key, &n.Node)
	}
	n.kind = k
	k.nodes = append(k.nodes, n)
	k.stale = true
	ix.nodes[in.Name] = n
	ix.stale = true
	ix.cover(n)
	return n
}

func (ix *index) dropNode(n *node) {
	k := n.kind
	k.nodes = slices.DeleteFunc(k.nodes, func(x *node) bool { return x == n })
	k.stale = true
	if len(k.nodes) == 0 {
		ix.dropKind(k)
	}
	delete(ix.nodes, n.Name)
	ix.stale = true
}

// refresh brings the indexes up to date after nodes changed.
func (ix *index) refresh() {
	if ix.stale {
		ix.stale = false
		ix.sorted = slices.SortedFunc(maps.Values(ix.nodes), func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
		for i, n := range ix.sorted {
			n.no = i
		}
	}
	for _, k := range ix.order {
		k.refresh()
	}
}
