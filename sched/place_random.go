package sched

import "gbatch/sched/nodes"

var randomPlacement = placement{
	name:       PlaceRandom,
	exhaustive: true,
	cost:       func(r *round, kind *jobKind, sp spot) cost { return cost{drawn(r, kind, sp.node)} },
	share:      fullestShare,
}

// drawn is a number that depends on the policy's seed, the round's time, the
// request and the node only.
func drawn(r *round, kind *jobKind, n *nodes.Node) int64 {
	h := r.policy.Seed ^ uint64(r.now)*0x9E3779B97F4A7C15 ^ uint64(len(r.plan.Starts))<<32
	for _, s := range [...]string{kind.Shape.Key, n.Name} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 0x100000001B3
		}
	}
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return int64((h ^ h>>32) >> 1)
}
