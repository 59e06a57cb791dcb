package sched

import "gbatch/sched/nodes"

var gbatchPlacement = placement{
	name: PlaceGbatch,
	cost: func(r *round, kind *jobKind, sp spot) cost {
		n := sp.node
		return cost{n.Kind.Value, r.lost(kind, sp), int64(sp.level), int64(boolInt(n.Idle())), n.FreeMilli(), n.CPUFree}
	},
	share: leastLost,
	usable: func(shape *nodes.Shape, f nodes.Fit, free *after, gpus []int32) int64 {
		return (usableInAll(shape, f, free, gpus) + onceWeight*usableOnce(shape, f, gpus)) / (1 + onceWeight)
	},
}

// onceWeight is how much more the next job of a shape counts than all that may
// come after it. FGD looks at the next one only and strands GPUs where cores run
// out; looking at all alone values capacity that will never be asked for. By
// replay of the published traces a mixture of both is better than either.
const onceWeight = 6

// usableInAll is the free thousandths that as many more jobs as have room would
// take: what is left when the cores have run out is lost too.
func usableInAll(shape *nodes.Shape, f nodes.Fit, a *after, gpus []int32) int64 {
	need := int32(min(shape.MilliGPU, WholeGPU))
	var jobs int64
	for g, free := range gpus {
		if f.GPUs.Has(g) {
			jobs += int64(free / need)
		}
	}
	jobs /= int64(max(shape.WholeGPUs(), 1))
	if shape.MilliCPU > 0 {
		jobs = min(jobs, a.cpu/shape.MilliCPU)
	}
	switch {
	case shape.AllMem:
		jobs = min(jobs, 1)
	case shape.MemMiB > 0:
		jobs = min(jobs, a.mem/shape.MemMiB)
	}
	return jobs * shape.MilliGPU
}
