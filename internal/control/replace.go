package control

import (
	"gbatch/internal/control/depend"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// replace cancels the user's earlier jobs of the name and project of one that
// takes their place, and lets it wait until they are over.
func (e Submit) replace(c *step, waits *state.Waits) *state.Waits {
	for n := c.depends.Earlier(e.Spec.Name, e.User, c.jobs.next, &c.jobs.table); n != 0; n = c.depends.Earlier(e.Spec.Name, e.User, n, &c.jobs.table) {
		if j := c.job(n); j.Owner.Project == e.Project {
			Act{Action: Cancel, By: e.User}.cancel(c, j)
		}
	}
	n := c.depends.Earlier(e.Spec.Name, e.User, c.jobs.next, &c.jobs.table)
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

// notifyReplaced lets a new job hear of those that it waits for and has itself
// ended, by taking their place.
func (c *step) notifyReplaced(j *state.Job) {
	for _, n := range depend.Awaits(j) {
		if a := c.job(n.Job); a.State.Final() || n.Task != nil {
			c.depends.Notify(a.Number)
		}
	}
}
