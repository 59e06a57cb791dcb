package nodes

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/sched/spec"
)

// choose decides which nodes and GPUs a window has that only counts them.
func (ix *Index) choose(w *spec.Window) error {
	ix.Refresh()
	match := ix.Intern(&w.Match)
	defer func() {
		if match.Refs == 0 {
			delete(ix.Shapes, match.Key)
		}
	}()
	nodes, err := ix.chooseNodes(w, match)
	if err != nil {
		return err
	}
	if w.GPUsPerNode > 0 {
		for _, n := range nodes {
			gpus, ok := n.chooseGPUs(w, match)
			if !ok {
				return fmt.Errorf("reservation %q: wants %d GPUs of node %s: %d match and are in no other reservation then", w.Name, w.GPUsPerNode, n.Name, gpus.Count())
			}
			for g := gpus.Next(0); g >= 0; g = gpus.Next(g + 1) {
				w.GPUs = append(w.GPUs, n.GPUs[g].UUID)
			}
		}
	}
	w.Nodes = nil
	for _, n := range nodes {
		w.Nodes = append(w.Nodes, n.Name)
	}
	w.Count, w.GPUsPerNode = 0, 0
	return nil
}

// chooseNodes is the nodes that the window names, or of those that match the
// ones that are free soonest.
func (ix *Index) chooseNodes(w *spec.Window, match *Shape) ([]*Node, error) {
	var out []*Node
	if w.Count == 0 {
		for _, name := range w.Nodes {
			n := ix.Nodes[name]
			if n == nil || n.Gone {
				return nil, fmt.Errorf("reservation %q: node %q is not known, so none of its GPUs can be chosen", w.Name, name)
			}
			out = append(out, n)
		}
		return out, nil
	}
	for _, n := range ix.Sorted {
		if n.Gone || !match.Named(n) || !match.On(n.Kind).OK {
			continue
		}
		if w.GPUsPerNode > 0 {
			if _, ok := n.chooseGPUs(w, match); ok {
				out = append(out, n)
			}
		} else if !slices.ContainsFunc(n.Windows, func(c cover) bool { return overlaps(w, c) }) {
			out = append(out, n)
		}
	}
	if len(out) < w.Count {
		what := "match and are in no other reservation then"
		if w.GPUsPerNode > 0 {
			what = fmt.Sprintf("have %d GPUs that %s", w.GPUsPerNode, what)
		}
		return nil, fmt.Errorf("reservation %q: wants %d nodes: %d %s", w.Name, w.Count, len(out), what)
	}
	slices.SortStableFunc(out, func(a, b *Node) int { return cmp.Compare(a.busyAt(w.Start, -1), b.busyAt(w.Start, -1)) })
	return out[:w.Count], nil
}

// overlaps says whether another window covers a node at the same time.
func overlaps(w *spec.Window, c cover) bool {
	return c.Name != w.Name && slices.ContainsFunc(w.Spans(), func(s spec.Span) bool { return c.Start < s.End && s.Start < c.End })
}

// chooseGPUs is so many GPUs of the node as the window wants of each: those that
// are free soonest, and of these as close together as there are. Where there are
// too few, it is those that there are.
func (n *Node) chooseGPUs(w *spec.Window, match *Shape) (GPUSet, bool) {
	f := match.On(n.Kind)
	if !f.OK {
		return GPUSet{}, false
	}
	all := f.GPUs.And(n.Usable)
	for _, c := range n.Windows {
		switch {
		case !overlaps(w, c):
		case c.part:
			all = all.AndNot(c.GPUs)
		default:
			all = GPUSet{}
		}
	}
	if all.Count() < w.GPUsPerNode {
		return all, false
	}
	var order []int
	for g := all.Next(0); g >= 0; g = all.Next(g + 1) {
		order = append(order, g)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(n.busyAt(w.Start, a), n.busyAt(w.Start, b)) })
	last := n.busyAt(w.Start, order[w.GPUsPerNode-1])
	var soon GPUSet
	for _, g := range order {
		if n.busyAt(w.Start, g) <= last {
			soon.Add(g)
		}
	}
	gpus, _ := n.Kind.Pick(soon, w.GPUsPerNode)
	return gpus, true
}

// busyAt is until when jobs that run past the time given hold the GPU, or for -1
// anything of the node; 0 if none does.
func (n *Node) busyAt(at spec.Time, gpu int) spec.Time {
	var until spec.Time
	for _, rank := range n.Ranks {
		if gpu < 0 || slices.ContainsFunc(rank.GPUs, func(u GPUUse) bool { return int(u.GPU) == gpu }) {
			until = max(until, rank.Run.End)
		}
	}
	if until <= at {
		return 0
	}
	return until
}
