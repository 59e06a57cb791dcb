package sched

import (
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/timeline"
)

// Conservative mode keeps its word: a job that has a reservation keeps it until
// it can have a sooner one. So the plan of the last round is an input of the
// next; without it, all places are given anew in order of priority. The other
// modes look at Input.Last no more than at any other past.

// promise is a reservation of the last round that holds.
type promise struct {
	bookings []*timeline.Booking
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
			r.calendar.timeline(n).Book(*p.bookings[i])
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
		p.bookings = append(p.bookings, &timeline.Booking{Start: at, End: at + kind.predicted, Use: kind.use(spot{node: n, gpus: gpus, shape: kind.Shape.OfRank(i)}), Job: e.id})
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
		r.calendar.timeline(n).Unbook(n, *p.bookings[i])
	}
}
