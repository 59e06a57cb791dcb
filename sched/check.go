package sched

import (
	"errors"
	"fmt"
)

// Check reports every invariant that does not hold. An error means a defect in
// this package, or an Adopt of facts that contradict each other.
func (s *State) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	s.index.Refresh()
	ranks := 0
	for _, n := range s.index.Sorted {
		ranks += len(n.Ranks)
		n.Check(bad)
	}
	for id, run := range s.running {
		ranks -= len(run.Held)
		if s.waiting[id] != nil {
			bad("job %d waits and runs", id)
		}
		for _, rank := range run.Held {
			if s.index.Nodes[rank.Node.Name] != rank.Node {
				bad("job %d holds node %s, which is not in the index", id, rank.Node.Name)
			}
		}
	}
	if ranks != 0 {
		bad("nodes hold %d ranks more than running jobs have", ranks)
	}
	s.checkQueue(bad)
	s.checkTallies(bad)
	return errors.Join(errs...)
}

func (s *State) checkQueue(bad func(string, ...any)) {
	live, kinds := 0, 0
	classes := 0
	s.eachClass(func(c *class) {
		classes++
		live += c.live
		n, last := 0, (*entry)(nil)
		for _, e := range c.jobs[c.head:] {
			if e == nil {
				continue
			}
			n++
			if s.waiting[e.id] != e || e.class != c {
				bad("job %d is in a class, and not in the queue", e.id)
			}
			if last != nil && compareEntries(last, e) >= 0 {
				bad("jobs %d and %d are out of order", last.id, e.id)
			}
			last = e
		}
		if n != c.live || n == 0 {
			bad("class %d has %d jobs, and counts %d", c.id, n, c.live)
		}
		if s.jobKinds[c.kind.key()] != c.kind {
			bad("class %d is of a kind that is not in the index", c.id)
		}
		if h := c.kind.heads[c.slot]; h.class != c || h.since != c.jobs[c.head].since || h.id != c.jobs[c.head].id {
			bad("class %d has another head in the index", c.id)
		}
	})
	for _, kind := range s.jobKinds {
		kinds += len(kind.heads)
	}
	if live != len(s.waiting) || kinds != classes || classes != s.classCount || len(s.jobKinds) != len(s.kindList) {
		bad("%d jobs wait in %d classes: classes hold %d, kinds %d", len(s.waiting), s.classCount, live, kinds)
	}
}

func (s *State) checkTallies(bad func(string, ...any)) {
	type counts struct {
		waiting, running int
		milli            int64
	}
	got, want := map[tallyKey]counts{}, map[tallyKey]counts{}
	for key, t := range s.tallies {
		got[key] = counts{t.waiting, t.running, t.milli}
	}
	count := func(all [tallyKinds]*tally, c counts) {
		for _, t := range all {
			if t != nil {
				w := want[t.tallyKey]
				want[t.tallyKey] = counts{w.waiting + c.waiting, w.running + c.running, w.milli + c.milli}
			}
		}
	}
	s.eachClass(func(c *class) {
		var own [tallyKinds]*tally
		c.eachTally(func(t *tally) { own[t.kind] = t })
		count(own, counts{waiting: c.live})
	})
	for _, run := range s.running {
		count(run.tallies, counts{running: 1, milli: run.MilliGPU})
	}
	for key, w := range want {
		if got[key] != w {
			bad("%v counts %+v, want %+v", key, got[key], w)
		}
	}
	if len(got) != len(want) {
		bad("%d tallies are kept, %d count something", len(got), len(want))
	}
}
