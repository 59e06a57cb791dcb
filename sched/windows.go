package sched

import (
	"cmp"
	"fmt"
	"slices"
)

// window is a Window with the nodes that it covers by name.
type window struct {
	Window
	nodes []string
}

// Reserve adds a window, or replaces the one of the same name. One that counts
// nodes is given the ones that are free soonest; it fails if there are too few
// that match.
func (s *State) Reserve(w Window) error {
	if err := w.Validate(); err != nil {
		return err
	}
	w.Nodes, w.Projects, w.Users = slices.Clone(w.Nodes), slices.Clone(w.Projects), slices.Clone(w.Users)
	in := &window{Window: w, nodes: w.Nodes}
	if w.Count > 0 {
		nodes, err := s.chooseNodes(w)
		if err != nil {
			return err
		}
		in.nodes = nodes
	}
	s.windows[w.Name] = in
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

// WindowNodes is the nodes that a window covers, by name.
func (s *State) WindowNodes(name string) []string {
	w := s.windows[name]
	if w == nil {
		return nil
	}
	out := slices.Clone(w.nodes)
	slices.Sort(out)
	return out
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
		if slices.Contains(w.nodes, n.Name) {
			n.windows = append(n.windows, w)
		}
	}
	slices.SortFunc(n.windows, func(a, b *window) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Name, b.Name))
	})
}

func (s *State) chooseNodes(w Window) ([]string, error) {
	s.refresh()
	match := s.intern(&w.Match)
	defer func() {
		if match.refs == 0 {
			delete(s.shapes, match.key)
		}
	}()
	var free []*node
	busyUntil := func(n *node) Time {
		var until Time
		for _, k := range n.ranks {
			until = max(until, k.run.End)
		}
		if until <= w.Start {
			return 0
		}
		return until
	}
	for _, n := range s.sorted {
		taken := slices.ContainsFunc(n.windows, func(o *window) bool {
			return o.Name != w.Name && o.Start < w.End && w.Start < o.End
		})
		if !n.gone && !taken && match.named(n) && match.on(n.kind).ok {
			free = append(free, n)
		}
	}
	if len(free) < w.Count {
		return nil, fmt.Errorf("window %q: wants %d nodes: %d match and are in no other window then", w.Name, w.Count, len(free))
	}
	slices.SortStableFunc(free, func(a, b *node) int { return cmp.Compare(busyUntil(a), busyUntil(b)) })
	names := make([]string, w.Count)
	for i := range names {
		names[i] = free[i].Name
	}
	return names, nil
}

// admits says whether a job of the project and user, which names these windows,
// may use it.
func (w *window) admits(project, user string, names []string) bool {
	if w.Maintenance {
		return false
	}
	return slices.Contains(names, w.Name) || slices.Contains(w.Projects, project) || slices.Contains(w.Users, user)
}

// closed is the first window that keeps jobs of the kind off the node if they
// start at the time given, nil if there is none. Windows are kept clear by
// limits: what a job may run, not what it is expected to.
func (n *node) closed(k *jobKind, at Time) *window {
	for _, w := range n.windows {
		if w.Start >= at+k.limit {
			return nil
		}
		if w.End > at && !k.windows[w] {
			return w
		}
	}
	return nil
}
