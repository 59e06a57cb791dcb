package nodes

// Each calls f for the nodes of a kind that may have room, fullest first, until
// it returns false. It returns how many it found by what is free on them.
func (kind *Kind) Each(shape *Shape, f func(*Node) bool) (looked int) {
	if shape.Choosy() {
		for _, n := range kind.Nodes {
			if n.indexed && shape.Named(n) && !f(n) {
				return looked
			}
		}
		return looked
	}
	walk := func(set nodeSet, skip nodeSet) bool {
		for i := set.next(0); i >= 0; i = set.next(i + 1) {
			if skip != nil && skip.has(i) {
				continue
			}
			looked++
			if !f(kind.Nodes[i]) {
				return false
			}
		}
		return true
	}
	switch {
	case shape.Whole():
		for w := len(kind.whole) - 1; w >= 0; w-- {
			if !walk(kind.whole[w], nil) {
				return looked
			}
		}
	case shape.Share():
		if !walk(kind.part, nil) {
			return looked
		}
		for w := 1; w < len(kind.whole); w++ {
			if !walk(kind.whole[w], kind.part) {
				return looked
			}
		}
	case shape.MilliGPU > 0:
		for w := shape.WholeGPUs(); w < len(kind.whole); w++ {
			if !walk(kind.whole[w], nil) {
				return looked
			}
		}
	default:
		for b := min(coresBucket(shape.MilliCPU), coresBuckets-1); b < coresBuckets; b++ {
			if !walk(kind.cores[b], nil) {
				return looked
			}
		}
	}
	return looked
}
