package control

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// replace cancels the user's earlier jobs of the name and project of one that
// takes their place, and lets it wait until they are over.
func (e Submit) replace(s *step, waits *state.Waits) *state.Waits {
	for n := s.depends.Earlier(e.Spec.Name, e.User, s.jobs.next, &s.jobs.table); n != 0; n = s.depends.Earlier(e.Spec.Name, e.User, n, &s.jobs.table) {
		if j := s.jobs.get(n); j.Owner.Project == e.Project {
			Act{Action: Cancel, By: e.User}.cancel(s, j)
		}
	}
	n := s.depends.Earlier(e.Spec.Name, e.User, s.jobs.next, &s.jobs.table)
	if n == 0 {
		return waits
	}
	w := &state.Waits{}
	if waits != nil {
		*w = *waits
	}
	w.Needs, w.Met = append(w.Needs[:len(w.Needs):len(w.Needs)], state.Need{Type: job.Singleton, Job: n}), false
	return w
}
