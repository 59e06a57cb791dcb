package sched

// PlaceBestFit takes the node that is left with the fewest free GPUs.
const PlaceBestFit Placement = "bestfit"

var bestFitPlacement = placement{
	name: PlaceBestFit,
	cost: func(_ *round, _ *jobKind, sp spot) cost {
		n := sp.node
		left := int64(n.free.count()) - int64(sp.gpus.count())
		return cost{n.kind.value, left, int64(sp.level), n.cpuFree}
	},
	share: fullestShare,
}

// fullestShare is the GPU of which the most is in use already.
func fullestShare(_ *round, _ *jobKind, n *node, avail gpuSet) spot {
	best := -1
	for g := avail.next(0); g >= 0; g = avail.next(g + 1) {
		if best < 0 || n.used[g] > n.used[best] {
			best = g
		}
	}
	var one gpuSet
	one.add(best)
	return spot{node: n, gpus: one}
}
