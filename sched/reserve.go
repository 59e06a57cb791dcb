package sched

import "slices"

// Reserve adds a window, or replaces the one of the same name. Nodes and GPUs
// that are only counted are chosen, those that are free soonest; it fails if too
// few match.
func (s *State) Reserve(w Window) error {
	if err := s.index.Reserve(w); err != nil {
		return err
	}
	s.rejoin()
	return nil
}

// Unreserve removes a window. It reports whether there was one.
func (s *State) Unreserve(name string) bool {
	if !s.index.Unreserve(name) {
		return false
	}
	s.rejoin()
	return true
}

// Window is a copy of a window with the nodes and GPUs that were chosen for it,
// and whether there is one of the name.
func (s *State) Window(name string) (Window, bool) {
	w := s.index.Windows[name]
	if w == nil {
		return Window{}, false
	}
	out := *w
	out.Nodes, out.Projects, out.Users = slices.Sorted(slices.Values(w.Nodes)), slices.Clone(w.Projects), slices.Clone(w.Users)
	out.GPUs = slices.Clone(w.GPUs)
	return out, true
}
