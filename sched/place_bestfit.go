package sched

import "gbatch/sched/nodes"

var bestFitPlacement = placement{
	name: PlaceBestFit,
	cost: func(_ *round, _ *jobKind, sp spot) cost {
		n := sp.node
		left := int64(n.Free.Count()) - int64(sp.gpus.Count())
		return cost{n.Kind.Value, left, int64(sp.level), n.CPUFree}
	},
	share: fullestShare,
}

// fullestShare is the GPU of which the most is in use already.
func fullestShare(_ *round, _ *jobKind, n *nodes.Node, avail nodes.GPUSet) spot {
	best := -1
	for g := avail.Next(0); g >= 0; g = avail.Next(g + 1) {
		if best < 0 || n.Used[g] > n.Used[best] {
			best = g
		}
	}
	var one nodes.GPUSet
	one.Add(best)
	return spot{node: n, gpus: one}
}
