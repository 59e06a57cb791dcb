package sched

// each calls f for the nodes of a kind that may have room, fullest first, until
// it returns false. It returns how many it found by what is free on them.
func (k *nodeKind) each(x *shape, f func(*node) bool) (looked int) {
	if x.choosy() {
		for _, n := range k.nodes {
			if n.indexed && x.named(n) && !f(n) {
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
			if !f(k.nodes[i]) {
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
	case x.share():
		if !walk(k.part, nil) {
			return looked
		}
		for w := 1; w < len(k.whole); w++ {
			if !walk(k.whole[w], k.part) {
				return looked
			}
		}
	case x.MilliGPU > 0:
		for w := x.wholeGPUs(); w < len(k.whole); w++ {
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
