package control

import "errors"

// Check verifies every invariant that holds between steps. Tests and the
// simulator call it after each step; it costs O(jobs).
func (c *Controller) Check() error {
	return errors.Join(
		c.queue.check(c.jobs), c.ledger.check(c.jobs), c.attempts.check(), c.jobs.check(), c.nodes.check(c.jobs),
		c.limits.check(c.jobs), c.idle.check(c.jobs), c.templates.check(c.jobs),
		c.depends.Check(&c.jobs.table), c.arrays.Check(&c.jobs.table),
	)
}
