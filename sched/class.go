package sched

import (
	"fmt"
	"hash/maphash"
	"slices"

	"gbatch/sched/nodes"
)

// classKey is what jobs of a class have in common.
type classKey struct {
	shape                    *nodes.Shape
	account                  *account
	extra                    *extra
	limit, limitMin          Time
	minRun, predicted        Time
	priority                 int
	interactive, restartable bool
}

// extra is what most classes do not have. Equal ones are shared.
type extra struct {
	extraKey
	refs   int
	names  []string // of windows that the jobs name
	bucket *tally
}

type extraKey struct {
	bucket    string
	bucketMax int
	windows   string // names, sorted and quoted
}

type class struct {
	classKey
	id   uint64 // never given twice
	same *class // of another key, with the same hash
	kind *jobKind
	slot int // in kind.heads

	alike *alike // what its jobs were last said to be to plans

	jobs []*entry // from head on; by since, then id; nil where one was taken out
	head int
	live int
}

func (c *class) bucket() string {
	if c.extra == nil {
		return ""
	}
	return c.extra.extraKey.bucket
}

func (c *class) bucketMax() int {
	if c.extra == nil {
		return 0
	}
	return c.extra.bucketMax
}

func (c *class) names() []string {
	if c.extra == nil {
		return nil
	}
	return c.extra.names
}

// eachTally calls f for all that counts jobs of the class.
func (c *class) eachTally(f func(*tally)) {
	for _, t := range c.account.tallies {
		if t != nil {
			f(t)
		}
	}
	if c.extra != nil && c.extra.bucket != nil {
		f(c.extra.bucket)
	}
}

func (c *class) add(e *entry) {
	c.live++
	if n := len(c.jobs); n == c.head || c.jobs[n-1] != nil && compareEntries(c.jobs[n-1], e) < 0 {
		c.jobs = append(c.jobs, e)
	} else {
		c.pack()
		at, _ := slices.BinarySearchFunc(c.jobs, e, compareEntries)
		c.jobs = slices.Insert(c.jobs, at, e)
	}
	c.setHead()
}

// drop leaves a hole, so that taking jobs out costs the same wherever they are.
func (c *class) drop(e *entry) {
	at := c.find(e)
	c.jobs[at] = nil
	c.live--
	for c.head < len(c.jobs) && c.jobs[c.head] == nil {
		c.head++
	}
	if len(c.jobs) > 2*c.live+16 {
		c.pack()
	}
	c.setHead()
}

// setHead tells the kind which job is first.
func (c *class) setHead() {
	if c.live > 0 {
		h := &c.kind.heads[c.slot]
		e := c.jobs[c.head]
		h.since, h.id, h.rare = e.since, e.id, e.rare != nil
	}
}

// pack closes the holes.
func (c *class) pack() {
	c.jobs = slices.DeleteFunc(c.jobs, func(e *entry) bool { return e == nil })
	c.head = 0
	if cap(c.jobs) > 4*len(c.jobs)+16 {
		c.jobs = slices.Clone(c.jobs)
	}
}

// find is the index of a job that is in the class. Holes are stepped over.
func (c *class) find(e *entry) int {
	low, high := c.head, len(c.jobs)
	for low < high {
		mid := int(uint(low+high) / 2)
		at := mid
		for at < high && c.jobs[at] == nil {
			at++
		}
		switch {
		case at == high:
			high = mid
		case c.jobs[at] == e:
			return at
		case compareEntries(c.jobs[at], e) < 0:
			low = at + 1
		default:
			high = mid
		}
	}
	panic(fmt.Sprintf("sched: job %d is not in its class", e.id))
}

// classOf finds or makes the class of a job.
func (s *State) classOf(j *Job) *class {
	key := classKey{
		shape: s.index.Intern(j.Shape), account: s.accountOf(j), extra: s.extraOf(j),
		limit: j.Limit, limitMin: j.LimitMin, minRun: j.MinRun, predicted: j.Predicted, priority: j.Priority,
		interactive: j.Interactive, restartable: j.Restartable,
	}
	h := maphash.Comparable(s.seed, key)
	for c := s.classes[h]; c != nil; c = c.same {
		if c.classKey == key {
			return c
		}
	}
	s.nextClass++
	c := &class{classKey: key, id: s.nextClass, same: s.classes[h]}
	s.classes[h] = c
	s.classCount++
	c.shape.Refs++
	c.account.refs++
	if c.extra != nil {
		c.extra.refs++
	}
	s.join(c)
	return c
}

func (s *State) dropClass(c *class) {
	h := maphash.Comparable(s.seed, c.classKey)
	if s.classes[h] == c {
		if s.classes[h] = c.same; c.same == nil {
			delete(s.classes, h)
		}
	} else {
		for d := s.classes[h]; ; d = d.same {
			if d.same == c {
				d.same = c.same
				break
			}
		}
	}
	s.classCount--
	s.leave(c)
	s.index.Unref(c.shape)
	c.account.refs--
	s.dropAccount(c.account)
	if c.extra != nil {
		if c.extra.refs--; c.extra.refs == 0 {
			delete(s.extras, c.extra.extraKey)
		}
	}
}

func (s *State) extraOf(j *Job) *extra {
	names := slices.Clone(j.Reservations)
	slices.Sort(names)
	names = slices.Compact(names)
	key := extraKey{bucket: j.Bucket, bucketMax: j.BucketMax}
	if len(names) > 0 {
		key.windows = fmt.Sprintf("%q", names)
	}
	if key == (extraKey{}) {
		return nil
	}
	x := s.extras[key]
	if x == nil {
		x = &extra{extraKey: key, names: names}
		if key.bucket != "" {
			x.bucket = s.tally(tallyKey{kind: ofBucket, name: key.bucket})
		}
		s.extras[key] = x
	}
	return x
}

// each calls f for all classes, in no order.
func (s *State) eachClass(f func(*class)) {
	for _, kind := range s.kindList {
		for i := range kind.heads {
			f(kind.heads[i].class)
		}
	}
}
