package sched

import (
	"math"
	"slices"

	"gbatch/sched/nodes"
)

var fgdPlacement = placement{
	name:       PlaceFGD,
	exhaustive: true,
	cost: func(r *round, kind *jobKind, sp spot) cost {
		return cost{-r.fgdScore(r.lost(kind, sp)), int64(boolInt(sp.node.Idle()))}
	},
	share:  leastLost,
	usable: func(shape *nodes.Shape, f nodes.Fit, _ *after, gpus []int32) int64 { return usableOnce(shape, f, gpus) },
}

// fgdScore is the published score of a loss: 100 times the logistic function of
// the GPUs gained, as an integer. Losses that are close score the same. Among
// those the published choices are nodes that are in use already, and no more is
// asked here: breaking ties better makes this another rule than the published.
func (r *round) fgdScore(lost int64) int64 {
	var weight int64
	for _, m := range r.mix() {
		weight += m.weight
	}
	gained := -lost * 1000 / max(weight, 1) // millionths of a GPU
	at, _ := slices.BinarySearch(fgdScores[:], gained+1)
	return int64(at)
}

// fgdScores[s-1] is the least gain, in millionths of a GPU, that scores s.
var fgdScores = func() (out [99]int64) {
	for i := range out {
		s := float64(i+1) / 100
		out[i] = int64(math.Ceil(1e6 * math.Log(s/(1-s))))
	}
	return out
}()
