package sched

import (
	"slices"

	"gbatch/sched/nodes"
)

// Conservative mode keeps its word: a job that has a reservation keeps it until
// it can have a sooner one. So the plan of the last round is an input of the
// next; without it, all places are given anew in order of priority. The other
// modes look at Input.Last no more than at any other past.

// promise is a reservation of the last round that holds.
type promise struct {
	bookings []*booking
	nodes    []*nodes.Node
}

// keep books the reservations of the last round.
func (r *round) keep(last []Reservation) {
	if r.policy.Mode != Conservative || len(last) == 0 {
		return
	}
	r.promises = make(map[JobID]promise, len(last))
	r.calendar.exact = true // to take a promise out again
	for _, res := range last {
		e := r.s.waiting[res.Job]
		if e == nil || e.deadline() <= r.now || e.class.shape.Ranks() != len(res.Ranks) {
			continue
		}
		p, ok := r.promised(e, res)
		if !ok {
			continue
		}
		for i, n := range p.nodes {
			r.calendar.timeline(n).book(*p.bookings[i])
		}
		kind := r.s.kindFor(e, res.Limit)
		r.calendar.licenses.Reserve(res.Job, max(res.At, r.now), max(res.At, r.now)+kind.predicted, kind.Shape.Licenses)
		r.promises[res.Job] = p
	}
}

// promised is a reservation in terms of the nodes as they are now. It does not
// hold any more where a node or a GPU of it takes no jobs.
func (r *round) promised(e *entry, res Reservation) (promise, bool) {
	kind := r.s.kindFor(e, res.Limit)
	var p promise
	for i, a := range res.Ranks {
		n := r.s.index.Nodes[a.Node]
		if n == nil || !n.TakesJobs() {
			return promise{}, false
		}
		var gpus nodes.GPUSet
		for _, g := range a.GPUs {
			i := slices.IndexFunc(n.GPUs, func(x GPU) bool { return x.UUID == g.UUID })
			if i < 0 || !n.Usable.Has(i) {
				return promise{}, false
			}
			gpus.Add(i)
		}
		at := max(res.At, r.now)
		p.bookings = append(p.bookings, &booking{at, at + kind.predicted, kind.use(spot{node: n, gpus: gpus, shape: kind.Shape.OfRank(i)}), e.id})
		p.nodes = append(p.nodes, n)
	}
	return p, kind.has(p.nodes)
}

// release takes a job's promise out of the plan, to look for a sooner one.
func (r *round) release(id JobID) {
	p, ok := r.promises[id]
	if !ok {
		return
	}
	delete(r.promises, id)
	r.calendar.licenses.Release(func(x JobID) bool { return x == id })
	for i, n := range p.nodes {
		r.calendar.timeline(n).unbook(n, *p.bookings[i])
	}
}

// unbook is the inverse of book. It needs the use of each GPU in the timeline,
// since a promise may overlap with a job that runs longer than it should.
func (l *timeline) unbook(n *nodes.Node, b booking) {
	at := slices.IndexFunc(l.booked, func(o booking) bool { return o == b })
	l.booked = slices.Delete(l.booked, at, at+1)
	from, to := l.cut(b.start), l.cut(b.end)
	for i := from; i < to; i++ {
		p := &l.points[i]
		p.cpu += b.use.cpu
		p.mem += b.use.mem
		p.disk += b.use.disk
		p.held--
		p.alone -= boolInt(b.use.alone)
		for g := b.use.gpus.Next(0); g >= 0; g = b.use.gpus.Next(g + 1) {
			if p.used[g] -= b.use.milli; p.used[g] == 0 && n.Usable.Has(g) {
				p.free.Add(g)
			}
		}
	}
	l.merge(from)
	l.merge(slices.IndexFunc(l.points, func(p point) bool { return p.at == b.end }))
}

// merge drops a point that says the same as the one before it.
func (l *timeline) merge(i int) {
	if i <= 0 {
		return
	}
	a, b := &l.points[i-1], &l.points[i]
	if a.cpu == b.cpu && a.mem == b.mem && a.disk == b.disk && a.free == b.free && a.held == b.held && a.alone == b.alone && slices.Equal(a.used, b.used) {
		l.points = slices.Delete(l.points, i, i+1)
	}
}
