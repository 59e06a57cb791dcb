package sched

import "gbatch/sched/fixed"

// Jobs that take little of the machine delay others little, so letting them go
// first shortens the wait of nearly everybody. Who takes much is kept from
// waiting for ever by the boost, which comes the later the more there is to do:
// when all have to wait long, waiting long is no reason to go first.

// smallPoints grow by Weights.Small with each halving of the machine time that
// a job is expected to take.
func (k *ranking) smallPoints(kind *jobKind) int64 {
	w := k.policy.Weights.Small
	if w == 0 {
		return 0
	}
	part, all := k.share(kind.size())
	taken := fixed.Log2(uint64(max(kind.expected, shortJob))) + fixed.Log2(uint64(max(part, 1))) - fixed.Log2(uint64(max(all, 1)))
	return fixed.MulDiv(w, int64(max(maxSmall-taken, 0)), 1<<fixed.LogBits)
}

// maxSmall is above the logarithm of every run time.
const maxSmall = 48 << fixed.LogBits

// size is the GPU thousandths and the cores that a job of the kind takes.
func (kind *jobKind) size() (gpu, cpu int64) {
	for _, g := range kind.Shape.Kinds() {
		cpu += int64(g.Ranks()) * g.MilliCPU
	}
	return kind.Shape.SizeMilli(), cpu
}

// share is the part of the machine that so many GPUs and cores are: of its GPUs
// or its cores, whichever is more.
func (k *ranking) share(gpu, cpu int64) (part, all int64) {
	if k.totalMilli > 0 && fixed.MulDiv(gpu, max(k.totalCPU, 1), k.totalMilli) >= cpu {
		return gpu, k.totalMilli
	}
	return cpu, k.totalCPU
}
