package control

import (
	"fmt"

	"gbatch/internal/state"
	"gbatch/sched"
)

// Tick lets time pass: nodes that are silent, ended jobs that leave the table,
// a plan that time alone changes.
type Tick struct{}

func (e Tick) apply(c *step) (None, *state.Refusal) {
	e.nodes(c)
	e.limits(c)
	e.penalties(c)
	e.evict(c)
	e.templates(c)
	e.days(c)
	for _, w := range c.queue.windows { // the slice is never changed in place
		if w.End <= c.now {
			c.queue.sched.Unreserve(w.Name)
			c.dropWindow(w.Name)
		}
	}
	if c.queue.plan != nil && c.queue.plan.Wake > 0 && c.now >= c.queue.plan.Wake {
		c.queue.due = true
	}
	return None{}, nil
}

func (Tick) audit(None) Audit { return Audit{Nothing: true} }

// NextTick is when Tick must be called at the latest; 0 if nothing waits for
// time. The next time at which a decision may change counts too.
func (c *Controller) NextTick(now sched.Time) sched.Time {
	next := sched.Time(0)
	sooner := func(t sched.Time) {
		if t > 0 && (next == 0 || t < next) {
			next = t
		}
	}
	for _, n := range c.nodes.list {
		sooner(n.Penalty())
		switch {
		case !n.Suspect:
			sooner(n.LastSeen + c.cfg.SuspectTime)
		case !n.Lost:
			sooner(n.LastSeen + c.cfg.NodeTimeout)
		}
	}
	for _, w := range c.queue.windows {
		sooner(w.End)
	}
	if len(c.queue.limits) > 0 {
		sooner(c.queue.limits[0].at)
	}
	switch {
	case len(c.jobs.ended) > c.cfg.KeepCount:
		sooner(now)
	case len(c.jobs.ended) > 0:
		sooner(c.job(c.jobs.ended[0]).Ended + c.cfg.KeepEnded)
	}
	if c.depends.Pending() {
		sooner(now)
	}
	sooner(c.templates.next)
	sooner(max(c.ledger.rollAt, 1)) // 0: not known yet
	if c.queue.plan != nil {
		sooner(c.queue.plan.Wake)
	}
	return next
}

func (e Tick) nodes(c *step) {
	for _, n := range c.nodes.list {
		silent := c.now - n.LastSeen
		if !n.Suspect && silent >= c.cfg.SuspectTime {
			v := *n
			v.Suspect = true
			c.setNode(v)
		}
		if !n.Lost && silent >= c.cfg.NodeTimeout {
			v := *c.node(n.Name)
			v.Lost = true
			c.setNode(v)
			c.loseNode(n.Name, fmt.Sprintf("node %s failed: no contact for %d s", n.Name, silent/1000), func(state.Rank) bool { return true })
		}
	}
}
