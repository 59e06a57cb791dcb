package control

import (
	"cmp"
	"fmt"
	"time"

	"gbatch/internal/control/ranks"
	"gbatch/internal/control/recur"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Tick lets time pass: nodes that are silent, ended jobs that leave the table,
// a plan that time alone changes.
type Tick struct {
	// Told is when a node was last sent a desired set, or may have been: 0 if not since
	// this start. Nil: nobody kept account.
	Told func(name string) sched.Time
	// Zone has the rules of a zone of which a reservation or template goes by the clock. Nil: all are UTC.
	Zone func(name string) *time.Location
}

func (e Tick) apply(s *step) (none, *state.Refusal) {
	if due := s.nodes.due; due > 0 && due <= s.now {
		e.nodes(s)
		e.leave(s)
		s.nodes.endPenalties()
		s.nodes.looked()
	}
	e.limits(s)
	e.warnings(s)
	e.given(s)
	s.jobs.evict()
	e.templates(s)
	if s.ledger.CloseDays() {
		s.queue.due = true
	}
	for _, w := range s.queue.windows { // the slice is never changed in place
		if w.End <= s.now {
			e.over(s, w)
		}
	}
	if s.queue.plan != nil && s.queue.plan.Wake > 0 && s.now >= s.queue.plan.Wake {
		s.queue.due = true
	}
	return none{}, nil
}

// over lets a reservation come again whose time is over, or removes it.
func (e Tick) over(s *step, w state.Window) {
	zone := time.UTC
	if w.Every != nil && e.Zone != nil {
		zone = e.Zone(w.Every.Zone)
	}
	if later, again := recur.Later(w, zone, s.now); again {
		must(s.queue.reserve(later)) // its nodes and GPUs are chosen
		return
	}
	s.queue.unreserve(w.Name)
}

func (Tick) audit(none) Audit { return Audit{Nothing: true} }

// NextTick is when Tick must be called at the latest; 0 if nothing waits for
// time. The next time at which a decision may change counts too.
func (c *Controller) NextTick(now sched.Time) sched.Time {
	next := c.nodes.due
	for _, w := range c.queue.windows {
		next = sooner(next, w.End)
	}
	if at, any := c.limits.Next(); any {
		next = sooner(next, at)
	}
	if at, any := c.warnings.Next(); any {
		next = sooner(next, at)
	}
	if at, any := c.attempts.given.NextDue(); any {
		next = sooner(next, at)
	}
	switch {
	case len(c.jobs.ended) > c.cfg.KeepCount:
		next = sooner(next, now)
	case len(c.jobs.ended) > 0:
		next = sooner(next, c.jobs.get(c.jobs.ended[0]).Ended+c.cfg.KeepEnded)
	}
	if c.depends.Pending() {
		next = sooner(next, now)
	}
	next = sooner(next, c.templates.Next())
	next = sooner(next, c.ledger.NextClose())
	if c.queue.plan != nil {
		next = sooner(next, c.queue.plan.Wake)
	}
	return next
}

// sooner is the first of some times of which 0 is never.
func sooner(times ...sched.Time) (first sched.Time) {
	for _, t := range times {
		if t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	return first
}

func (e Tick) nodes(s *step) {
	for was := range s.nodes.list.All() {
		s.attempts.kept(was.Name)
		n := s.nodes.get(was.Name) // the end of a job on several nodes may have changed it
		suspect, lost := s.cfg.patience().Silent(s.now, n)
		if suspect == n.Suspect && lost == n.Lost {
			continue
		}
		v := *n
		v.Suspect, v.Lost = suspect, lost
		s.nodes.set(v)
		if lost && !n.Lost {
			e.unsent(s, n.Name)
			silent := fmt.Sprintf("no contact for %d s", (s.now-n.LastSeen)/1000)
			s.attempts.lose(n.Name, fmt.Sprintf("node %s failed: %s", n.Name, silent), func(j *state.Job, r state.Rank) bool { return !j.Attempt.Alone || r.Unsent })
			s.attempts.alone(n.Name, silent+" to "+n.Name+", where it runs on by itself", "")
		}
	}
}

// unsent marks the ranks that a node which is lost was never told of: they were
// given to it when it had gone already. Of what an earlier start did nothing is known.
func (e Tick) unsent(s *step, name string) {
	if e.Told == nil {
		return
	}
	told := max(e.Told(name), s.jobs.loadedAt)
	for _, num := range s.nodes.get(name).Jobs {
		j := s.jobs.get(num)
		if cmp.Or(j.Attempt.Given, j.Attempt.Start) <= told {
			continue
		}
		at := j.Attempt
		for i, r := range at.Ranks {
			if r.Alloc.Node == name && r.Phase == node.PhaseAssigned {
				at = ranks.With(at, i, func(r *state.Rank) { r.Unsent = true })
			}
		}
		if at != j.Attempt {
			s.jobs.change(j, fmt.Sprintf("%s had gone before it could be told", name), func(j *state.Job) { j.Attempt = at })
		}
	}
}
