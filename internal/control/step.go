package control

import "gbatch/sched"

// step is an event or a round under way: the controller, and the moment at
// which it happens. Only a step changes jobs, by change and add.
type step struct {
	*Controller
	now sched.Time
}

// finish is the end of every step.
func (c *step) finish() {
	c.follow()
	c.recordUsage()
}
