package control

import (
	"slices"

	"gbatch/internal/control/ahead"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// planImages tells nodes of the images that the plan's reservations will want there. It is derived from the plan alone, so nothing of it is recorded.
func (t *nodes) planImages(reservations []sched.Reservation) {
	if t.out.NoRecords {
		return // a simulation has no images
	}
	planned := ahead.Planned(t.out.Now, reservations)
	for n := range ahead.Of(&t.list, t.ahead, planned) {
		list, changed, fresh := ahead.Next(n.Prepulls, planned[n.Name])
		if !changed {
			continue
		}
		v := *n
		v.Prepulls = list
		t.set(v)
		if fresh { // only that is worth a message of its own
			t.wake(n.Name)
		}
	}
	t.ahead = planned
}

// prepulled takes a node's word on what became of the images that it was to pull ahead. It is for people and figures: nothing depends on it.
func (e NodeSync) prepulled(s *step) {
	for _, d := range e.Prepulled {
		n := *s.nodes.get(e.Name)
		i := slices.IndexFunc(n.Prepulls, func(p state.Prepull) bool { return p.Job == d.Job && !p.Answered })
		if i < 0 {
			continue
		}
		n.Prepulls = slices.Clone(n.Prepulls)
		n.Prepulls[i].Answered = true
		s.nodes.set(n)
		s.out.Prepulled = append(s.out.Prepulled, d)
		line := ahead.Text(e.Name, d)
		if j := s.jobs.get(d.Job); j != nil && j.State == job.Queued && line != "" {
			s.jobs.change(j, line, func(*state.Job) {})
		}
	}
}
