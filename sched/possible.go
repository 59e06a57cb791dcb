package sched

// Possible says whether the nodes as they are known, up or not but with nothing
// on them, could ever hold the shape. It costs the nodes it has to look at
// until there are enough, and is meant for every submission; WouldStart has the
// reasons.
func (s *State) Possible(in *Shape) bool {
	x := s.intern(in)
	if x.refs == 0 { // nobody else keeps it: leave no trace
		defer delete(s.shapes, x.key)
	}
	left := x.Ranks()
	for _, k := range s.order {
		if !x.on(k).ok {
			continue
		}
		for _, n := range k.nodes {
			if n.gone || !x.named(n) {
				continue
			}
			if left--; left == 0 {
				return true
			}
		}
	}
	return false
}
