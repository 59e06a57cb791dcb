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
func (r *round) smallPoints(kind *jobKind) int64 {
	w := r.policy.Weights.Small
	if w == 0 {
		return 0
	}
	part, all := kind.share(r)
	taken := fixed.Log2(uint64(max(kind.expected, shortJob))) + fixed.Log2(uint64(max(part, 1))) - fixed.Log2(uint64(max(all, 1)))
	return fixed.MulDiv(w, int64(max(maxSmall-taken, 0)), 1<<fixed.LogBits)
}

// maxSmall is above the logarithm of every run time.
const maxSmall = 48 << fixed.LogBits

// share is the part of the machine that a job of the kind takes: of its GPUs or
// its cores, whichever is more.
func (kind *jobKind) share(r *round) (part, all int64) {
	gpu, cpu := kind.Shape.SizeMilli(), int64(kind.Shape.Ranks())*kind.Shape.MilliCPU
	if r.totalMilli > 0 && fixed.MulDiv(gpu, max(r.totalCPU, 1), r.totalMilli) >= cpu {
		return gpu, r.totalMilli
	}
	return cpu, r.totalCPU
}

// patience is the age at which jobs go first: MaxWaitBoost, and a part of the
// time that all that waits and runs would keep the whole machine busy for.
func (r *round) patience() Time {
	p := r.policy
	if p.BoostBacklog == 0 {
		return p.MaxWaitBoost
	}
	if r.boostAfter == 0 {
		r.boostAfter = min(p.MaxWaitBoost+Time(fixed.MulDiv(p.BoostBacklog, int64(r.backlog()), 100)), spec.MaxTime)
	}
	return r.boostAfter
}

// SetLimitUse says how much of what limits ask for jobs use lately, in percent,
// as Predictor.LimitUse knows it.
func (s *State) SetLimitUse(percent int64) { s.limitUse = percent }

// backlog is the time for which the whole machine has work, by limits and by
// how much of them is used.
func (r *round) backlog() Time {
	var sum int64 // microseconds
	add := func(left Time, part, all, n int64) {
		if left > 0 && all > 0 {
			one := fixed.MulDiv(min(int64(left), int64(spec.MaxTime/1000))*1000, part, all)
			sum += min(fixed.MulDiv(one, n, 1), 1<<61-sum)
		}
	}
	for _, kind := range r.s.kindList {
		part, all := kind.share(r)
		for i := range kind.heads {
			add(kind.Limit, part, all, int64(kind.heads[i].class.live))
		}
	}
	for _, run := range r.s.running { // a sum: order does not matter
		gpu, cpu := run.MilliGPU, int64(0)
		for _, rank := range run.Held {
			cpu += rank.MilliCPU
		}
		if r.totalMilli > 0 && fixed.MulDiv(gpu, max(r.totalCPU, 1), r.totalMilli) >= cpu {
			add(run.End-r.now, gpu, r.totalMilli, 1)
		} else {
			add(run.End-r.now, cpu, r.totalCPU, 1)
		}
	}
	return Time(fixed.MulDiv(sum/1000, cmp.Or(r.s.limitUse, 100), 100))
}
