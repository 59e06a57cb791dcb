package sched

import (
	"gbatch/sched/mix"
	"gbatch/sched/nodes"
)

var gbatchPlacement = placement{
	name: PlaceGbatch,
	cost: func(r *round, kind *jobKind, sp spot) cost {
		n := sp.node
		return cost{n.Kind.Value, r.lost(kind, sp), int64(sp.level), int64(boolInt(n.Idle())), n.FreeMilli(), n.CPUFree}
	},
	share: leastLost,
	usable: func(shape *nodes.Shape, f nodes.Fit, free *mix.Free, gpus []int32) int64 {
		return (mix.All(shape, f, free, gpus) + onceWeight*mix.Once(shape, f, free, gpus)) / (1 + onceWeight)
	},
}

// onceWeight is how much more the next job of a shape counts than all that may
// come after it. FGD looks at the next one only and strands GPUs where cores run
// out; looking at all alone values capacity that will never be asked for. By
// replay of the published traces a mixture of both is better than either.
const onceWeight = 6
