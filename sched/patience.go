package sched

import (
	"cmp"

	"gbatch/accounting"
	"gbatch/sched/fixed"
	"gbatch/sched/spec"
)

// Who has waited for long goes first, so that nobody waits for ever. Where
// shares count, that must not become a way to more than one's share: a backlog
// is always old. So a job's age counts for points from when its owner was served
// last, and of the jobs that go before all others an owner has one at a time:
// the oldest, and after it the next when the owner's share of the machine has
// paid for the one before.

// owner is who has shares: a user in a project.
type owner struct{ project, user string }

func (a *account) owner() owner { return owner{a.project, a.user} }

// shared says that the machine is divided by shares.
func (k *ranking) shared() bool { return k.shares != nil && k.policy.Weights.FairShare > 0 }

// began is the moment from which on jobs of the account become old, those that
// came before it.
func (k *ranking) began(a *account) Time {
	if !k.shared() {
		return 0
	}
	return Time(k.shares.Claim(a.project, a.user).Began)
}

// turn is the job of an owner that goes before all others.
type turn struct {
	since Time
	id    JobID
	until Time // owners have no turn before it
}

// boosted says whether the job goes before all that are not.
func (k *ranking) boosted(a *account, since Time, id JobID) bool {
	most := k.policy.MaxWaitBoost
	if most == 0 || k.now-since < most || k.now-since < k.patience() {
		return false
	}
	if !k.shared() {
		return true
	}
	if k.turns == nil {
		k.findTurns()
	}
	t, ok := k.turns[a.owner()]
	return ok && t.id == id && t.until <= k.now
}

// findTurns finds the oldest job of each owner that has waited for long enough.
func (k *ranking) findTurns() {
	k.turns = map[owner]turn{}
	for _, kind := range k.s.kindList {
		for i := range kind.heads {
			h := &kind.heads[i]
			if k.now-h.since < k.patience() || h.rare && h.class.jobs[h.class.head].deadline() <= k.now {
				continue
			}
			o := h.account.owner()
			if t, ok := k.turns[o]; !ok || h.since < t.since || h.since == t.since && h.id < t.id {
				k.turns[o] = turn{h.since, h.id, Time(k.shares.Claim(o.project, o.user).Until)}
			}
		}
	}
}

// until is when an owner may have another turn, if a job starts now that was
// old enough for one: its share of the machine has paid for the job by then, or
// the owner was patient anew. 0 if the job was not.
func (k *ranking) until(e *entry) Time {
	most := k.policy.MaxWaitBoost
	if most == 0 || k.now-e.since < most || !k.shared() {
		return 0
	}
	o, kind := e.class.account.owner(), e.class.kind
	part, all := k.share(kind.size())
	claim := k.shares.Claim(o.project, o.user)
	cost := fixed.MulDiv(fixed.MulDiv(int64(kind.Limit), part, max(all, 1)), accounting.Scale, claim.Part)
	from := max(Time(claim.Until), k.untils[o], k.now)
	if k.untils == nil {
		k.untils = map[owner]Time{}
	}
	k.untils[o] = min(from+Time(min(cost, int64(spec.MaxTime))), k.now+max(most, k.patience()))
	return k.untils[o]
}

// patience is for how long owners have to wait before a job goes first: MaxWaitBoost, and a part of the
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
