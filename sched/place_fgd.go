package sched

import (
	"gbatch/sched/mix"
	"gbatch/sched/nodes"
)

// The published choices are, among places of the same score, nodes that are in use
// already, and no more is asked here: breaking ties better makes this another rule
// than the published.
var fgdPlacement = placement{
	name:       PlaceFGD,
	exhaustive: true,
	cost: func(r *round, kind *jobKind, sp spot) cost {
		return cost{-r.loss.Score(r.lost(kind, sp)), int64(boolInt(sp.node.Idle()))}
	},
	share:  leastLost,
	usable: mix.Once,
}

// lost is what the mix of shapes loses by a rank of the kind at the spot.
func (r *round) lost(kind *jobKind, sp spot) int64 {
	u := kind.use(sp)
	return r.loss.Lost(mix.Rank{Shape: kind.Shape, Node: sp.node, GPUs: sp.gpus, CPU: u.CPU, Mem: u.Mem, Milli: u.Milli})
}

// leastLost is the place on the GPU on which a share leaves most to the mix.
func leastLost(r *round, kind *jobKind, n *nodes.Node, avail nodes.GPUSet) spot {
	var best spot
	var bestLost int64
	for g := avail.Next(0); g >= 0; g = avail.Next(g + 1) {
		sp := spot{node: n}
		sp.gpus.Add(g)
		if l := r.lost(kind, sp); best.node == nil || l < bestLost {
			best, bestLost = sp, l
		}
	}
	return best
}
