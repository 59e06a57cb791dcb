package sched

import (
	"slices"
	"strings"

	"gbatch/sched/nodes"
)

// jobKindKey is what placement depends on.
type jobKindKey struct {
	shape *nodes.Shape
	limit Time
	outlook
}

// outlook is what the plan reckons with beyond the request.
type outlook struct {
	predicted   Time
	expected    Time // predicted, whatever the plan reckons with
	least       Time // limit that will do where its jobs start sooner by it; 0: only the limit
	interactive bool
	access      string // names of the windows that its jobs may use
}

// jobKind is the classes that placement does not tell apart.
type jobKind struct {
	nodes.Request
	outlook
	id    uint64 // never given twice
	slot  int    // in State.kindList
	heads []head // one for each class, in no order

	brief *jobKind // with the least limit; nil if only the limit will do

	ways []*jobKind // in each partition that is up, in the order of preference; else itself
}

func (kind *jobKind) key() jobKindKey { return jobKindKey{kind.Shape, kind.Limit, kind.outlook} }

// head is the first job of a class. A round looks at all of them, one after the
// other in memory, and at little else.
type head struct {
	since   Time
	id      JobID
	static  int64 // priority points that do not change with time
	account *account
	class   *class
	rare    bool // it may have a deadline
}

// join puts the class into its kind, leave takes it out.
func (s *State) join(c *class) {
	access, windows := s.accessOf(c)
	limit := c.limit
	if limit == 0 {
		limit = s.policy.DefaultLimit
	}
	expected := limit
	if c.predicted > 0 {
		expected = min(c.predicted, limit)
	}
	least := c.limitMin
	if least >= limit {
		least = 0
	}
	key := jobKindKey{c.shape, limit, outlook{s.estimate(limit, c.predicted), expected, least, c.interactive, access}}
	kind := s.jobKinds[key]
	if kind == nil {
		s.nextKind++
		kind = &jobKind{Request: nodes.Request{Shape: c.shape, Limit: limit, Windows: windows}, outlook: key.outlook, id: s.nextKind, slot: len(s.kindList)}
		kind.ways = s.waysOf(kind)
		if least > 0 {
			kind.brief = s.shortened(kind, least)
		}
		s.jobKinds[key] = kind
		s.kindList = append(s.kindList, kind)
	}
	c.kind, c.slot = kind, len(kind.heads)
	kind.heads = append(kind.heads, head{static: s.staticPoints(c), account: c.account, class: c})
	c.setHead()
}

func (s *State) leave(c *class) {
	kind := c.kind
	last := len(kind.heads) - 1
	kind.heads[c.slot] = kind.heads[last]
	kind.heads[c.slot].class.slot = c.slot
	kind.heads[last] = head{}
	kind.heads = kind.heads[:last]
	c.kind = nil
	if last > 0 {
		return
	}
	delete(s.jobKinds, kind.key())
	end := len(s.kindList) - 1
	s.kindList[kind.slot] = s.kindList[end]
	s.kindList[kind.slot].slot = kind.slot
	s.kindList[end] = nil
	s.kindList = s.kindList[:end]
}

// rejoin sorts all classes into kinds anew, after policy or windows changed.
func (s *State) rejoin() {
	var all []*class
	s.eachClass(func(c *class) { all = append(all, c) })
	clear(s.jobKinds)
	s.kindList = nil
	for _, c := range all {
		s.join(c)
	}
}

// estimate is the run time that the plan reckons with at the start of a job.
func (s *State) estimate(limit, predicted Time) Time {
	if !s.policy.PlansByPrediction() || predicted <= 0 {
		return limit
	}
	return min(predicted, limit)
}

// accessOf is the windows that jobs of the class may use.
func (s *State) accessOf(c *class) (string, map[*Window]bool) {
	if len(s.index.Windows) == 0 {
		return "", nil
	}
	var names []string
	windows := map[*Window]bool{}
	for _, w := range s.index.Windows {
		if w.Admits(c.account.project, c.account.user, c.names()) {
			names = append(names, w.Name)
			windows[w] = true
		}
	}
	slices.Sort(names)
	return strings.Join(names, "\x00"), windows
}
