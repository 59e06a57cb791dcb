package sched

import (
	"cmp"
	"slices"
	"strings"

	"gbatch/sched/spec"
)

// window is a Window as it was settled: its nodes and GPUs are chosen.
type window struct {
	spec.Window
}

// cover is a window on one node.
type cover struct {
	*window
	part bool   // it keeps the GPUs only, and not the whole node
	gpus gpuSet // if it is part
}

// reserve adds a window, or replaces the one of the same name. Nodes and GPUs
// that are only counted are chosen, those that are free soonest; it fails if too
// few match.
func (ix *index) reserve(w spec.Window) error {
	if err := w.Validate(); err != nil {
		return err
	}
	w.Nodes, w.Projects, w.Users = slices.Clone(w.Nodes), slices.Clone(w.Projects), slices.Clone(w.Users)
	w.GPUs = slices.Clone(w.GPUs)
	if w.Count > 0 || w.GPUsPerNode > 0 {
		if err := ix.choose(&w); err != nil {
			return err
		}
	}
	ix.windows[w.Name] = &window{w}
	ix.coverAll()
	return nil
}

// unreserve removes a window. It reports whether there was one.
func (ix *index) unreserve(name string) bool {
	if ix.windows[name] == nil {
		return false
	}
	delete(ix.windows, name)
	ix.coverAll()
	return true
}

func (ix *index) coverAll() {
	for _, n := range ix.nodes { // each node by itself: order does not matter
		ix.cover(n)
	}
}

// cover lists the windows that cover the node.
func (ix *index) cover(n *node) {
	n.windows = nil
	for _, w := range ix.windows {
		if !slices.Contains(w.Nodes, n.Name) {
			continue
		}
		c := cover{window: w, part: len(w.GPUs) > 0}
		for i, g := range n.GPUs {
			if slices.Contains(w.GPUs, g.UUID) {
				c.gpus.add(i)
			}
		}
		n.windows = append(n.windows, c)
	}
	slices.SortFunc(n.windows, func(a, b cover) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Name, b.Name))
	})
}

// admits says whether a job of the project and user, which names these windows,
// may use it.
func (w *window) admits(project, user string, names []string) bool {
	if w.Maintenance {
		return false
	}
	named := func(s string) bool { return s == w.Name || w.ID != "" && strings.EqualFold(s, w.ID) }
	return slices.ContainsFunc(names, named) || slices.Contains(w.Projects, project) || slices.Contains(w.Users, user)
}

// request is what windows and nodes need to know of a job.
type request struct {
	shape   *shape
	limit   spec.Time        // it may run for so long
	windows map[*window]bool // that it may use
}

// shuts says whether the window keeps such jobs off if they start at the
// time given. Windows are kept clear by limits: what a job may run, not what it
// is expected to.
func (w *window) shuts(q *request, at spec.Time) bool {
	return w.Start < at+q.limit && w.End > at && !q.windows[w]
}

// closed is the first window that keeps such jobs off the node, nil if
// there is none. A job that takes the whole node is kept off by a window on any
// GPU of it.
func (n *node) closed(q *request, at spec.Time) *window {
	for _, c := range n.windows {
		if (!c.part || q.shape.Whole() && !c.gpus.empty()) && c.shuts(q, at) {
			return c.window
		}
	}
	return nil
}

// kept is the GPUs that windows keep from such jobs.
func (n *node) kept(q *request, at spec.Time) gpuSet {
	var out gpuSet
	for _, c := range n.windows {
		if c.part && c.shuts(q, at) {
			out = out.or(c.gpus)
		}
	}
	return out
}

// reopens is when the first of the windows that keep GPUs from such jobs
// ends; Never if there is none.
func (n *node) reopens(q *request, at spec.Time) spec.Time {
	next := spec.Never
	for _, c := range n.windows {
		if c.part && c.shuts(q, at) {
			next = min(next, c.End)
		}
	}
	return next
}

// shutBy is the window but for which a rank had room, by what is held on the
// node; nil if it has room, or none anyway.
func (n *node) shutBy(q *request, f fit, at spec.Time) *window {
	if w := n.closed(q, at); w != nil || q.shape.MilliGPU == 0 {
		return w
	}
	kept := n.kept(q, at)
	if kept.empty() {
		return nil
	}
	f.gpus = f.gpus.andNot(kept)
	if _, ok := n.room(q.shape, f); ok {
		return nil
	}
	for _, c := range n.windows {
		if c.part && c.shuts(q, at) {
			return c.window
		}
	}
	return nil
}
