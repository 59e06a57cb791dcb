package control

import "gbatch/sched"

// step is an event or a round under way: the controller, and the moment at
// which it happens. Only a step changes jobs, by change and add.
type step struct {
	*Controller
	now sched.Time
}

// begin is the beginning of every step. There is one at a time.
func (c *Controller) begin(now sched.Time) *step {
	c.out = Effects{noRecords: c.cfg.NoRecords}
	c.step = step{c, now}
	return &c.step
}

// finish is the end of every step.
func (c *step) finish() {
	c.follow()
	c.recordUsage()
}
