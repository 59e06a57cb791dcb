package sched

import (
	"cmp"

	"gbatch/sched/fixed"
	"gbatch/sched/spec"
)

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
	return kind.Shape.SizeMilli(), int64(kind.Shape.Ranks()) * kind.Shape.MilliCPU
}

// share is the part of the machine that so many GPUs and cores are: of its GPUs
// or its cores, whichever is more.
func (k *ranking) share(gpu, cpu int64) (part, all int64) {
	if k.totalMilli > 0 && fixed.MulDiv(gpu, max(k.totalCPU, 1), k.totalMilli) >= cpu {
		return gpu, k.totalMilli
	}
	return cpu, k.totalCPU
}

// patience is the age at which jobs go first: MaxWaitBoost, and a part of the
// time that all that waits and runs would keep the whole machine busy for.
func (k *ranking) patience() Time {
	p := k.policy
	if p.BoostBacklog == 0 {
		return p.MaxWaitBoost
	}
	if k.boostAfter == 0 {
		k.boostAfter = min(p.MaxWaitBoost+Time(fixed.MulDiv(p.BoostBacklog, int64(k.backlog()), 100)), spec.MaxTime)
	}
	return k.boostAfter
}

// SetLimitUse says how much of what limits ask for jobs use lately, in percent,
// as Predictor.LimitUse knows it.
func (s *State) SetLimitUse(percent int64) { s.limitUse = percent }

// backlog is the time for which the whole machine has work, by limits and by
// how much of them is used.
func (k *ranking) backlog() Time {
	var sum int64 // microseconds
	add := func(left Time, part, all, n int64) {
		if left > 0 && all > 0 {
			one := fixed.MulDiv(min(int64(left), int64(spec.MaxTime/1000))*1000, part, all)
			sum += min(fixed.MulDiv(one, n, 1), 1<<61-sum)
		}
	}
	for _, kind := range k.s.kindList {
		part, all := k.share(kind.size())
		for i := range kind.heads {
			add(kind.Limit, part, all, int64(kind.heads[i].class.live))
		}
	}
	for _, run := range k.s.running { // a sum: order does not matter
		gpu, cpu := run.MilliGPU, int64(0)
		for _, rank := range run.Held {
			cpu += rank.MilliCPU
		}
		part, all := k.share(gpu, cpu)
		add(run.End-k.now, part, all, 1)
	}
	return Time(fixed.MulDiv(sum/1000, cmp.Or(k.s.limitUse, 100), 100))
}
