package sched

import "gbatch/sched/timeline"

// placing is a job's place in the plan.
type placing struct {
	e     *entry
	kind  *jobKind // of e, or with a shorter limit
	at    Time
	spots []spot
}

// book puts a job's place into the plan.
func (r *round) book(p placing) {
	kind := p.kind
	for _, sp := range p.spots {
		r.calendar.timeline(sp.node).Book(timeline.Booking{Start: p.at, End: p.at + kind.predicted, Use: kind.use(sp), Job: p.e.id})
	}
	r.calendar.licenses.Reserve(p.e.id, p.at, p.at+kind.predicted, kind.Shape.Licenses)
	r.usage.count(p.e.class, p.at, kind.milliAt(p.spots))
	r.placed = append(r.placed, p)
	r.plan.Reservations = append(r.plan.Reservations, Reservation{Job: p.e.id, At: p.at, Ranks: kind.allocations(p.spots), Limit: kind.granted(p.e.class)})
}

// replan gives all jobs that have a reservation a new one, in the same order, by
// what is expected to be free now, as the next round will. So it shows what ending
// some jobs would come to. It returns the places that they had, for restore, and
// false where one of the jobs that others are ended for would not start soon any more.
func (r *round) replan(soon Time) (old []placing, ok bool) {
	old = r.unplan()
	for _, p := range old {
		next := r.soonest(p.e, r.now)
		if next.spots == nil || next.at > soon && r.preemptors[p.e.id] {
			return old, false
		}
		r.book(next)
	}
	return old, true
}

// restore puts the places back that replan took.
func (r *round) restore(old []placing) {
	r.unplan()
	for _, p := range old {
		r.book(p)
	}
}

// unplan takes all places out of the plan, but for promises of the last round
// to jobs that were not looked at yet.
func (r *round) unplan() []placing {
	old := r.placed
	r.placed, r.plan.Reservations = nil, nil
	clear(r.usage.planned)
	r.calendar.licenses.Release(func(id JobID) bool { _, promised := r.promises[id]; return !promised })
	for _, n := range r.calendar.lined {
		l := r.calendar.timeline(n)
		booked := l.Booked
		r.calendar.project(n, l)
		for _, b := range booked {
			if _, promised := r.promises[b.Job]; promised {
				l.Book(b)
			}
		}
	}
	return old
}
