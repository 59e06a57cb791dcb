package control

import (
	"cmp"
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Tick lets time pass: nodes that are silent, ended jobs that leave the table,
// a plan that time alone changes. It has no answer.
type Tick struct{}

func (Tick) apply(c *Controller, now sched.Time) any {
	c.tickNodes(now)
	c.tickLimits(now)
	c.tickPenalties(now)
	c.evict(now)
	c.tickCron(now)
	c.rollDays(now)
	for _, w := range c.windows { // the slice is never changed in place
		if w.End <= now {
			c.sched.Unreserve(w.Name)
			c.dropWindow(w.Name)
		}
	}
	if c.plan != nil && c.plan.Wake > 0 && now >= c.plan.Wake {
		c.dirty = true
	}
	return nil
}

// NextTick is when Tick must be called at the latest; 0 if nothing waits for
// time. The next time at which a decision may change counts too.
func (c *Controller) NextTick(now sched.Time) sched.Time {
	next := sched.Time(0)
	sooner := func(t sched.Time) {
		if t > 0 && (next == 0 || t < next) {
			next = t
		}
	}
	for _, n := range c.nodes {
		sooner(n.Penalty())
		switch {
		case !n.Suspect:
			sooner(n.LastSeen + c.cfg.SuspectTime)
		case !n.Lost:
			sooner(n.LastSeen + c.cfg.NodeTimeout)
		}
	}
	for _, w := range c.windows {
		sooner(w.End)
	}
	if len(c.limits) > 0 {
		sooner(c.limits[0].at)
	}
	switch {
	case len(c.ended) > c.cfg.KeepCount:
		sooner(now)
	case len(c.ended) > 0:
		sooner(c.job(c.ended[0]).Ended + c.cfg.KeepEnded)
	}
	if len(c.unsettled) > 0 {
		sooner(now)
	}
	sooner(c.cronNext)
	sooner(max(c.rollAt, 1)) // 0: not known yet
	if c.plan != nil {
		sooner(c.plan.Wake)
	}
	return next
}

func (c *Controller) tickNodes(now sched.Time) {
	for _, n := range c.nodes {
		silent := now - n.LastSeen
		if !n.Suspect && silent >= c.cfg.SuspectTime {
			v := *n
			v.Suspect = true
			c.setNode(v)
		}
		if !n.Lost && silent >= c.cfg.NodeTimeout {
			v := *c.node(n.Name)
			v.Lost = true
			c.setNode(v)
			c.loseNode(now, n.Name, fmt.Sprintf("node %s failed: no contact for %d s", n.Name, silent/1000), func(state.Rank) bool { return true })
		}
	}
}

// evict moves jobs that ended long ago out of the table into history, a
// bounded number each time so that no step takes long.
func (c *Controller) evict(now sched.Time) {
	const most = 512
	done := 0
	for done < most && len(c.ended) > 0 && len(c.unsettled) == 0 { // who waits for one hears of its end first
		j := c.job(c.ended[0])
		if len(c.ended) <= c.cfg.KeepCount && now-j.Ended < c.cfg.KeepEnded {
			break
		}
		c.ended = c.ended[1:]
		c.jobs.Put(j.Number, nil)
		delete(c.byUUID, j.UUID)
		c.record(state.Record{Kind: state.KindJob, Job: j.Number})
		if !c.cfg.NoRecords {
			c.record(state.Record{Kind: state.KindHistory, Job: j.Number, Value: j.EncodeHistory()})
		}
		if j.Tasks != nil {
			for _, r := range j.Tasks.Dropped(j.Number) {
				c.record(r)
			}
		}
		c.record(state.Record{Kind: state.KindUUID, Name: string(j.UUID[:]), Job: j.Number, Value: []byte{}})
		done++
	}
	if done > 0 {
		c.jobs.Trim()
	}
}

// sortEnded puts the ended jobs in the order they ended, after a load: tasks
// before their array.
func (c *Controller) sortEnded() {
	slices.SortFunc(c.ended, func(a, b job.Number) int {
		return cmp.Or(cmp.Compare(c.job(a).Ended, c.job(b).Ended), cmp.Compare(c.job(b).Parent, c.job(a).Parent), cmp.Compare(a, b))
	})
}
