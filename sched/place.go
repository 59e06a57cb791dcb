package sched

import "slices"

// spot is a place for one rank.
type spot struct {
	node  *node
	gpus  gpuSet
	level int // of closeness of the GPUs, 0 the best
}

// find looks for places for all ranks of a job of the kind, now, such that no
// reservation is delayed and no window is entered. It returns nil if there are
// none.
func (r *round) find(k *jobKind) []spot {
	r.stats.Searches++
	if k.shape.Ranks() > 1 {
		return r.findGang(k)
	}
	var best spot
	var bestCost cost
	count, value := 0, int64(-1)
	most := r.policy.Candidates
	if most == 0 || r.placement.exhaustive {
		most = len(r.s.index.sorted)
	}
	for _, nk := range r.s.index.order {
		if value >= 0 && nk.value > value && !r.placement.exhaustive {
			break
		}
		f := k.shape.on(nk)
		if !f.ok || nk.open == 0 {
			continue
		}
		r.stats.Visited += nk.each(k.shape, func(n *node) bool {
			avail, ok := r.roomNow(n, k, f)
			if !ok {
				return true
			}
			sp := r.spotOn(n, k, avail)
			if c := r.placement.cost(r, k, sp); count == 0 || c.less(bestCost) {
				best, bestCost = sp, c
			}
			count++
			value = nk.value
			return count < most
		})
	}
	if count == 0 {
		return nil
	}
	return []spot{best}
}

// roomNow is the GPUs that a rank of the kind can have on the node from now on,
// and whether there is enough of everything.
func (r *round) roomNow(n *node, k *jobKind, f fit) (gpuSet, bool) {
	if len(n.windows) > 0 {
		if n.closed(&k.request, r.now) != nil {
			return gpuSet{}, false
		}
		f.gpus = f.gpus.andNot(n.kept(&k.request, r.now))
	}
	if l := &r.lines[n.no]; len(l.booked) > 0 {
		avail, _, ok := l.room(n, k, r.now, r.now+k.predicted)
		return avail, ok
	}
	return n.room(k.shape, f)
}

// spotOn chooses GPUs out of those that are available.
func (r *round) spotOn(n *node, k *jobKind, avail gpuSet) spot {
	x := k.shape
	switch {
	case x.Whole():
		return spot{node: n, gpus: n.usable}
	case x.share():
		return r.placement.share(r, k, n, avail)
	}
	gpus, level := n.kind.pick(avail, x.wholeGPUs())
	return spot{n, gpus, level}
}

// findGang looks for a node for each rank: of one kind, under one switch and on
// the nodes that suit best, as far as that is possible.
func (r *round) findGang(k *jobKind) []spot {
	found := r.findAlike(k)
	if k.shape.rest == nil || found == nil {
		return found
	}
	rest := r.findRest(k, found)
	if rest == nil {
		return nil
	}
	return append(slices.Clip(found), *rest)
}

// findRest finds a place for the rank with fewer GPUs: of the other nodes the
// one with the most free, by name where they are alike. That is what the request
// says (Shape.RestMilliGPU), so no placement is asked which node it is; it is
// asked which GPUs.
func (r *round) findRest(k *jobKind, taken []spot) *spot {
	small := *k
	small.shape = k.shape.rest
	var best *node
	var avail gpuSet
	for _, n := range r.s.index.sorted {
		f := small.shape.on(n.kind)
		if !f.ok || !n.open() || !small.shape.named(n) || slices.ContainsFunc(taken, func(sp spot) bool { return sp.node == n }) {
			continue
		}
		if a, ok := r.roomNow(n, &small, f); ok && (best == nil || a.count() > avail.count()) {
			best, avail = n, a
		}
	}
	if best == nil {
		return nil
	}
	sp := r.spotOn(best, &small, avail)
	return &sp
}

// findAlike finds places for the ranks that are alike.
func (r *round) findAlike(k *jobKind) []spot {
	ranks := k.shape.Alike()
	most := len(r.s.index.sorted) // of one kind that are compared, unless a switch makes them differ
	if c := r.policy.Candidates; c > 0 && !r.placement.exhaustive {
		most = ranks + c
	}
	var all []spot
	for _, nk := range r.s.index.order {
		f := k.shape.on(nk)
		if !f.ok || nk.open == 0 {
			continue
		}
		var found []spot
		r.stats.Visited += nk.each(k.shape, func(n *node) bool {
			if avail, ok := r.roomNow(n, k, f); ok {
				found = append(found, r.spotOn(n, k, avail))
			}
			return len(found) < most || nk.switched
		})
		if len(found) >= ranks {
			return r.closest(k, found, ranks)
		}
		all = append(all, found...)
	}
	if len(all) < ranks {
		return nil
	}
	return r.closest(k, all, ranks)
}

// closest chooses a spot for each rank: the smallest switch that has enough, or
// else the largest ones.
func (r *round) closest(k *jobKind, found []spot, ranks int) []spot {
	costs := make(map[*node]cost, len(found))
	under := map[string]int{}
	for _, sp := range found {
		costs[sp.node] = r.placement.cost(r, k, sp)
		under[sp.node.Switch]++
	}
	class := func(sp spot) int { // order of its switch: exact ones first, then the larger
		if c := under[sp.node.Switch]; c >= ranks {
			return c
		} else {
			return 1<<30 - c
		}
	}
	slices.SortStableFunc(found, func(a, b spot) int {
		if d := class(a) - class(b); d != 0 {
			return d
		}
		if a.node.Switch != b.node.Switch {
			if a.node.Switch < b.node.Switch {
				return -1
			}
			return 1
		}
		ca, cb := costs[a.node], costs[b.node]
		return slices.Compare(ca[:], cb[:])
	})
	return found[:ranks]
}
