package nodes

import (
	"cmp"
	"slices"

	"gbatch/sched/spec"
)

// cover is one of the times of a window on one node.
type cover struct {
	*spec.Window              // with this time alone
	of           *spec.Window // the whole
	part         bool         // it keeps the GPUs only, and not the whole node
	GPUs         GPUSet       // if it is part
}

// Reserve adds a window, or replaces the one of the same name. Nodes and GPUs
// that are only counted are chosen, those that are free soonest; it fails if too
// few match.
func (ix *Index) Reserve(w spec.Window) error {
	if err := w.Validate(); err != nil {
		return err
	}
	w.Nodes, w.Projects, w.Users = slices.Clone(w.Nodes), slices.Clone(w.Projects), slices.Clone(w.Users)
	w.GPUs, w.More = slices.Clone(w.GPUs), slices.Clone(w.More)
	if w.Count > 0 || w.GPUsPerNode > 0 {
		if err := ix.choose(&w); err != nil {
			return err
		}
	}
	ix.Windows[w.Name], ix.times[w.Name] = &w, nil
	for _, span := range w.Spans() {
		one := w
		one.Start, one.End, one.More = span.Start, span.End, nil
		ix.times[w.Name] = append(ix.times[w.Name], &one)
	}
	ix.coverAll()
	return nil
}

// Unreserve removes a window. It reports whether there was one.
func (ix *Index) Unreserve(name string) bool {
	if ix.Windows[name] == nil {
		return false
	}
	delete(ix.Windows, name)
	delete(ix.times, name)
	ix.coverAll()
	return true
}

func (ix *Index) coverAll() {
	for _, n := range ix.Nodes { // each node by itself: order does not matter
		ix.cover(n)
	}
}

// cover lists the windows that cover the node.
func (ix *Index) cover(n *Node) {
	n.Windows = nil
	for _, w := range ix.Windows {
		if !slices.Contains(w.Nodes, n.Name) {
			continue
		}
		c := cover{of: w, part: len(w.GPUs) > 0}
		for i, g := range n.GPUs {
			if slices.Contains(w.GPUs, g.UUID) {
				c.GPUs.Add(i)
			}
		}
		for _, c.Window = range ix.times[w.Name] {
			n.Windows = append(n.Windows, c)
		}
	}
	slices.SortFunc(n.Windows, func(a, b cover) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Name, b.Name))
	})
}

// Request is what windows and nodes need to know of a job.
type Request struct {
	Shape   *Shape
	Limit   spec.Time             // it may run for so long
	Windows map[*spec.Window]bool // that it may use
}

// shuts says whether the window keeps such jobs off if they start at the
// time given. Windows are kept clear by limits: what a job may run, not what it
// is expected to.
func (c cover) shuts(request *Request, at spec.Time) bool {
	return c.Start < at+request.Limit && c.End > at && !request.Windows[c.of]
}

// Closed is the first window that keeps such jobs off the node, nil if
// there is none. A job that takes the whole node is kept off by a window on any
// GPU of it.
func (n *Node) Closed(request *Request, at spec.Time) *spec.Window {
	for _, c := range n.Windows {
		if (!c.part || request.Shape.Whole() && !c.GPUs.Empty()) && c.shuts(request, at) {
			return c.Window
		}
	}
	return nil
}

// Kept is the GPUs that windows keep from such jobs.
func (n *Node) Kept(request *Request, at spec.Time) GPUSet {
	var out GPUSet
	for _, c := range n.Windows {
		if c.part && c.shuts(request, at) {
			out = out.or(c.GPUs)
		}
	}
	return out
}

// Reopens is when the first of the windows that keep GPUs from such jobs
// ends; Never if there is none.
func (n *Node) Reopens(request *Request, at spec.Time) spec.Time {
	next := spec.Never
	for _, c := range n.Windows {
		if c.part && c.shuts(request, at) {
			next = min(next, c.End)
		}
	}
	return next
}

// ShutBy is the window but for which a rank had room, by what is held on the
// node; nil if it has room, or none anyway.
func (n *Node) ShutBy(request *Request, f Fit, at spec.Time) *spec.Window {
	if w := n.Closed(request, at); w != nil || request.Shape.MilliGPU == 0 {
		return w
	}
	kept := n.Kept(request, at)
	if kept.Empty() {
		return nil
	}
	f.GPUs = f.GPUs.AndNot(kept)
	if _, ok := n.Room(request.Shape, f); ok {
		return nil
	}
	for _, c := range n.Windows {
		if c.part && c.shuts(request, at) {
			return c.Window
		}
	}
	return nil
}
