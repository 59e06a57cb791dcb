package nodes

// Each calls f for the nodes of a kind that may have room, fullest first, until
// it returns false. It returns how many it found by what is free on them.
func (k *Kind) Each(x *Shape, f func(*Node) bool) (looked int) {
	if x.Choosy() {
		for _, n := range k.Nodes {
			if n.indexed && x.Named(n) && !f(n) {
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
			if !f(k.Nodes[i]) {
				return false
			}
		}
		return true
	}
	switch {
	case x.Whole():
		for w := len(k.whole) - 1; w >= 0; w-- {
			if !walk(k.whole[w], nil) {
				return looked
			}
		}
	case x.Share():
		if !walk(k.part, nil) {
			return looked
		}
		for w := 1; w < len(k.whole); w++ {
			if !walk(k.whole[w], k.part) {
				return looked
			}
		}
	case x.MilliGPU > 0:
		for w := x.WholeGPUs(); w < len(k.whole); w++ {
			if !walk(k.whole[w], nil) {
				return looked
			}
		}
	default:
		for b := min(coresBucket(x.MilliCPU), coresBuckets-1); b < coresBuckets; b++ {
			if !walk(k.cores[b], nil) {
				return looked
			}
		}
	}
	return looked
}
