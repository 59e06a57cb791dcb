package sched

import "sort"

// Position is the place of a waiting job among those that may start by their own
// will, in the order of priority, and how many these are. 1 goes first; 0 is no
// place: it does not wait, or not yet for room. Jobs of a class keep their order,
// so it costs a search in each class, not a look at each job.
func (in Input) Position(id JobID) (place, of int) {
	s := in.State
	e := s.waiting[id]
	r := newRound(in)
	defer r.close()
	r.weigh()
	score := func(c *class, x *entry) int64 {
		return r.ranking.score(&r.kinds[c.kind.slot], c.kind.heads[c.slot].static+r.points[c.account.slot], x.since)
	}
	placed := e != nil && e.since <= r.now
	own := int64(0)
	if placed {
		own, place = score(e.class, e), 1
	}
	s.eachClass(func(c *class) { // sums: order does not matter
		of += c.first(func(x *entry) bool { return x.since <= r.now })
		if placed {
			place += c.first(func(x *entry) bool {
				points := score(c, x)
				return x.since <= r.now && (points > own || points == own && compareEntries(x, e) < 0)
			})
		}
	})
	return place, of
}

// first is how many jobs there are at the beginning of the class for which f is
// true; it must be true for none behind one for which it is false.
func (c *class) first(f func(*entry) bool) int {
	jobs := c.jobs[c.head:]
	job := func(i int) *entry { // the first one there or behind
		for i < len(jobs) && jobs[i] == nil {
			i++
		}
		if i == len(jobs) {
			return nil
		}
		return jobs[i]
	}
	n := sort.Search(len(jobs), func(i int) bool { entry := job(i); return entry == nil || !f(entry) })
	if c.live == len(jobs) {
		return n
	}
	live := 0
	for _, entry := range jobs[:n] {
		if entry != nil {
			live++
		}
	}
	return live
}
