package sched

import (
	"cmp"
	"slices"
	"strings"
)

// window is a Window as it was settled: its nodes and GPUs are chosen.
type window struct {
	Window
}

// cover is a window on one node.
type cover struct {
	*window
	part bool   // it keeps the GPUs only, and not the whole node
	gpus gpuSet // if it is part
}

// Reserve adds a window, or replaces the one of the same name. Nodes and GPUs
// that are only counted are chosen, those that are free soonest; it fails if too
// few match.
func (s *State) Reserve(w Window) error {
	if err := w.Validate(); err != nil {
		return err
	}
	w.Nodes, w.Projects, w.Users = slices.Clone(w.Nodes), slices.Clone(w.Projects), slices.Clone(w.Users)
	w.GPUs = slices.Clone(w.GPUs)
	if w.Count > 0 || w.GPUsPerNode > 0 {
		if err := s.choose(&w); err != nil {
			return err
		}
	}
	s.windows[w.Name] = &window{w}
	s.windowsChanged()
	return nil
}

// Unreserve removes a window. It reports whether there was one.
func (s *State) Unreserve(name string) bool {
	if s.windows[name] == nil {
		return false
	}
	delete(s.windows, name)
	s.windowsChanged()
	return true
}

// Window is a copy of a window with the nodes and GPUs that were chosen for it,
// and whether there is one of the name.
func (s *State) Window(name string) (Window, bool) {
	w := s.windows[name]
	if w == nil {
		return Window{}, false
	}
	out := w.Window
	out.Nodes, out.Projects, out.Users = slices.Sorted(slices.Values(w.Nodes)), slices.Clone(w.Projects), slices.Clone(w.Users)
	out.GPUs = slices.Clone(w.GPUs)
	return out, true
}

func (s *State) windowsChanged() {
	for _, n := range s.nodes { // each node by itself: order does not matter
		s.cover(n)
	}
	s.rejoin()
}

// cover lists the windows that cover the node.
func (s *State) cover(n *node) {
	n.windows = nil
	for _, w := range s.windows {
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

// shuts says whether the window keeps jobs of the kind off if they start at the
// time given. Windows are kept clear by limits: what a job may run, not what it
// is expected to.
func (w *window) shuts(k *jobKind, at Time) bool {
	return w.Start < at+k.limit && w.End > at && !k.windows[w]
}

// closed is the first window that keeps jobs of the kind off the node, nil if
// there is none. A job that takes the whole node is kept off by a window on any
// GPU of it.
func (n *node) closed(k *jobKind, at Time) *window {
	for _, c := range n.windows {
		if (!c.part || k.shape.whole() && !c.gpus.empty()) && c.shuts(k, at) {
			return c.window
		}
	}
	return nil
}

// kept is the GPUs that windows keep from jobs of the kind.
func (n *node) kept(k *jobKind, at Time) gpuSet {
	var out gpuSet
	for _, c := range n.windows {
		if c.part && c.shuts(k, at) {
			out = out.or(c.gpus)
		}
	}
	return out
}

// reopens is when the first of the windows that keep GPUs from jobs of the kind
// ends; Never if there is none.
func (n *node) reopens(k *jobKind, at Time) Time {
	next := Never
	for _, c := range n.windows {
		if c.part && c.shuts(k, at) {
			next = min(next, c.End)
		}
	}
	return next
}

// shutBy is the window but for which a rank had room, by what is held on the
// node; nil if it has room, or none anyway.
func (n *node) shutBy(k *jobKind, f fit, at Time) *window {
	if w := n.closed(k, at); w != nil || k.shape.MilliGPU == 0 {
		return w
	}
	kept := n.kept(k, at)
	if kept.empty() {
		return nil
	}
	f.gpus = f.gpus.andNot(kept)
	if _, ok := n.room(k.shape, f); ok {
		return nil
	}
	for _, c := range n.windows {
		if c.part && c.shuts(k, at) {
			return c.window
		}
	}
	return nil
}
