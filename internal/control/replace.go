package control

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// replace cancels the user's earlier jobs of the name and project of one that
// takes their place, and lets it wait until they are over.
func (c *Controller) replace(now sched.Time, e Submit, waits *state.Waits) *state.Waits {
	for n := c.earlier(e.Spec.Name, e.User, c.next); n != 0; n = c.earlier(e.Spec.Name, e.User, n) {
		if j := c.job(n); j.Owner.Project == e.Project {
			c.cancel(now, j, Act{Action: Cancel, By: e.User})
		}
	}
	n := c.earlier(e.Spec.Name, e.User, c.next)
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

// tellReplaced lets a new job hear of those that it waits for and has itself
// ended, by taking their place.
func (c *Controller) tellReplaced(j *state.Job) {
	for _, n := range awaits(j) {
		if a := c.job(n.Job); a.State.Final() || n.Task != nil {
			c.tell(a)
		}
	}
}
