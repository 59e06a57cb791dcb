package sched

// A job may say that a shorter limit than its own will do. It is planned with its own
// where that starts it as soon, else with the shortest; and when it starts by a shorter one
// it is given as much time as there is until others, who were promised what it takes.

// shortened is the kind with another limit, for one decision.
func (s *State) shortened(kind *jobKind, limit Time) *jobKind {
	short := &jobKind{Request: kind.Request, outlook: kind.outlook}
	short.Limit, short.least = limit, 0
	short.predicted, short.expected = min(kind.predicted, limit), min(kind.expected, limit)
	short.ways = s.waysOf(short)
	return short
}

// leastLimited is the kind with the shortest limit that will do.
func (kind *jobKind) leastLimited() *jobKind {
	if kind.brief != nil {
		return kind.brief
	}
	return kind
}

// granted is the limit of the kind where it is not that of the class; else 0.
func (kind *jobKind) granted(c *class) Time {
	if kind.Limit == c.kind.Limit {
		return 0
	}
	return kind.Limit
}

// kindFor is that of a job with the limit that a plan gave it.
func (s *State) kindFor(e *entry, limit Time) *jobKind {
	kind := e.class.kind
	if limit <= 0 || limit >= kind.Limit || kind.brief == nil {
		return kind
	}
	return s.shortened(kind, max(limit, kind.least))
}

// findAny looks for places, now, for jobs of the kind: with their own limit, or the longest
// of the shorter ones that will do.
func (r *round) findAny(kind *jobKind) (*jobKind, []spot) {
	if spots := r.findNew(kind); spots != nil {
		return kind, spots
	}
	if kind.brief == nil {
		return nil, nil
	}
	spots := r.findNew(kind.brief)
	if spots == nil {
		return nil, nil
	}
	best := kind.brief
	for low, high := kind.least, kind.Limit; high-low > Second; { // low will do, high will not
		mid := low + (high-low)/2/Second*Second
		if mid == low {
			break
		}
		if longer := r.s.shortened(kind, mid); r.roomFor(longer, spots) {
			low, best = mid, longer
		} else {
			high = mid
		}
	}
	return best, spots
}

// roomFor says whether the spots can be had for the whole time of the kind.
func (r *round) roomFor(kind *jobKind, spots []spot) bool {
	if r.calendar.licensed(kind, r.now) > r.now {
		return false
	}
	for _, sp := range spots {
		of := kind.of(sp.shape)
		avail, ok := r.roomNow(sp.node, of, of.Shape.On(sp.node.Kind))
		if !ok || !of.Shape.Whole() && !sp.gpus.AndNot(avail).Empty() {
			return false
		}
	}
	return true
}

// soonest is where a job starts first, from a time on: with its own limit, or if that
// is sooner with the shortest that will do.
func (r *round) soonest(e *entry, from Time) placing {
	kind := e.class.kind
	p := placing{e: e, kind: kind}
	p.at, p.spots = r.earliest(kind, from)
	if kind.brief == nil || p.spots != nil && p.at == from {
		return p
	}
	if at, spots := r.earliest(kind.brief, from); spots != nil && (p.spots == nil || at < p.at) {
		return placing{e, kind.brief, at, spots}
	}
	return p
}
