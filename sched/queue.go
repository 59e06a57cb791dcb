package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The queue costs by the classes of interchangeable jobs, not by the jobs. Jobs
// of a class differ in age only, so they keep their order for ever, and each
// class is a list of its own by eligible time, then number. Classes that are
// the same to placement make up a jobKind: when a job of a kind finds no room,
// none of the others does in that round.

// entry is a waiting job: what it does not share with its class.
type entry struct {
	id        JobID
	submitted Time
	since     Time // eligible since: its age counts from there
	class     *class
	name      string
	rare      *rare // what most jobs do not ask for, nil if this one does not
}

type rare struct{ notBefore, notAfter, maxQueued Time }

// classKey is what jobs of a class have in common.
type classKey struct {
	shape                    *shape
	project, user, qos       string
	limit, minRun, predicted Time
	priority                 int
	interactive, restartable bool
	bucket                   string
	bucketMax                int
	reservations             string // sorted and quoted
}

type class struct {
	classKey
	id      uint64   // never given twice
	names   []string // of windows that the jobs name
	kind    *jobKind
	tallies [tallyKinds]*tally
	jobs    []*entry // from head on; by since, then id; nil where one was taken out
	head    int
	live    int

	static int64 // priority points that do not change with time
	score  int64 // of the head, in the current round
	next   int   // index of the job to look at, in the current round
}

// kindKeyOf is what placement depends on.
type kindKeyOf struct {
	shape            *shape
	limit, predicted Time
	interactive      bool
	access           string // names of the windows that its jobs may use
}

// jobKind is the classes that placement does not tell apart.
type jobKind struct {
	kindKeyOf
	id      uint64 // never given twice
	windows map[*window]bool
	classes []*class
	heap    []*class // of the current round
	blocked bool     // in the current round: there is no room now
	why     blocked
}

// Enqueue adds a waiting job. It fails if the job is malformed; a job of the
// same id that waits already is replaced, one that runs is an error.
func (s *State) Enqueue(j Job) error {
	if err := j.Validate(); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	if s.running[j.ID] != nil {
		return fmt.Errorf("enqueue: job %d: it is running", j.ID)
	}
	s.Dequeue(j.ID)
	c := s.classOf(&j)
	e := &entry{id: j.ID, submitted: j.Submitted, since: j.since(), class: c, name: j.Name}
	if j.NotBefore != 0 || j.NotAfter != 0 || j.MaxQueued != 0 {
		e.rare = &rare{j.NotBefore, j.NotAfter, j.MaxQueued}
	}
	c.add(e)
	s.waiting[j.ID] = e
	c.shape.submitted++
	for _, t := range c.tallies {
		if t != nil {
			t.waiting++
		}
	}
	if d := j.deadline(); d < Never {
		s.due.push(due{d, j.ID})
	}
	return nil
}

// Dequeue takes a waiting job out. It reports whether the job waited.
func (s *State) Dequeue(id JobID) bool {
	e := s.waiting[id]
	if e == nil {
		return false
	}
	c := e.class
	delete(s.waiting, id)
	for _, t := range c.tallies {
		if t != nil {
			t.waiting--
			s.dropTally(t)
		}
	}
	c.drop(e)
	if c.live == 0 {
		s.dropClass(c)
	}
	s.due.settle(len(s.waiting), s.counts)
	return true
}

// counts says that a deadline is that of a waiting job.
func (s *State) counts(d due) bool {
	e := s.waiting[d.id]
	return e != nil && e.deadline() == d.at
}

// Waiting is a copy of a waiting job, and whether it waits.
func (s *State) Waiting(id JobID) (Job, bool) {
	e := s.waiting[id]
	if e == nil {
		return Job{}, false
	}
	return e.job(), true
}

// Queued is how many jobs wait.
func (s *State) Queued() int { return len(s.waiting) }

func (e *entry) job() Job {
	c := e.class
	j := Job{ID: e.id, Project: c.project, User: c.user, QOS: c.qos, Name: e.name, Shape: &c.shape.Shape,
		Submitted: e.submitted, Limit: c.limit, MinRun: c.minRun, Predicted: c.predicted, Priority: c.priority,
		Interactive: c.interactive, Restartable: c.restartable, Bucket: c.bucket, BucketMax: c.bucketMax,
		Reservations: slices.Clone(c.names)}
	if e.rare != nil {
		j.NotBefore, j.NotAfter, j.MaxQueued = e.rare.notBefore, e.rare.notAfter, e.rare.maxQueued
	}
	return j
}

func (e *entry) deadline() Time {
	if e.rare == nil {
		return Never
	}
	j := Job{Submitted: e.submitted, NotAfter: e.rare.notAfter, MaxQueued: e.rare.maxQueued}
	return j.deadline()
}

func compareEntries(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.id, b.id))
}

func (c *class) add(e *entry) {
	c.live++
	if n := len(c.jobs); n == c.head || c.jobs[n-1] != nil && compareEntries(c.jobs[n-1], e) < 0 {
		c.jobs = append(c.jobs, e)
		return
	}
	c.pack()
	at, _ := slices.BinarySearchFunc(c.jobs, e, compareEntries)
	c.jobs = slices.Insert(c.jobs, at, e)
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

func (s *State) classOf(j *Job) *class {
	names := slices.Clone(j.Reservations)
	slices.Sort(names)
	names = slices.Compact(names)
	key := classKey{
		shape: s.intern(j.Shape), project: j.Project, user: j.User, qos: j.QOS,
		limit: j.Limit, minRun: j.MinRun, predicted: j.Predicted, priority: j.Priority,
		interactive: j.Interactive, restartable: j.Restartable, bucket: j.Bucket, bucketMax: j.BucketMax,
	}
	if len(names) > 0 {
		key.reservations = fmt.Sprintf("%q", names)
	}
	if c := s.classes[key]; c != nil {
		return c
	}
	s.nextClass++
	c := &class{classKey: key, id: s.nextClass, names: names}
	c.shape.refs++
	c.tallies = s.talliesOf(j)
	s.classes[key] = c
	s.join(c)
	return c
}

func (s *State) dropClass(c *class) {
	delete(s.classes, c.classKey)
	s.leave(c)
	s.unref(c.shape)
}

// join puts the class into its kind, leave takes it out.
func (s *State) join(c *class) {
	c.static = s.staticPoints(c)
	access, windows := s.accessOf(c)
	limit := c.limit
	if limit == 0 {
		limit = s.policy.DefaultLimit
	}
	key := kindKeyOf{c.shape, limit, s.estimate(limit, c.predicted), c.interactive, access}
	k := s.kindsOf[key]
	if k == nil {
		s.nextKind++
		k = &jobKind{kindKeyOf: key, id: s.nextKind, windows: windows}
		s.kindsOf[key] = k
	}
	c.kind = k
	k.classes = append(k.classes, c)
}

func (s *State) leave(c *class) {
	k := c.kind
	at := slices.Index(k.classes, c)
	k.classes[at] = k.classes[len(k.classes)-1] // order does not matter: each round sorts by priority
	k.classes = k.classes[:len(k.classes)-1]
	if len(k.classes) == 0 {
		delete(s.kindsOf, k.kindKeyOf)
	}
	c.kind = nil
}

// rejoin sorts all classes into kinds anew, after policy or windows changed.
func (s *State) rejoin() {
	clear(s.kindsOf)
	for _, c := range s.classes { // a set of classes per kind: order does not matter
		s.join(c)
	}
}

// estimate is the run time that the plan reckons with at the start of a job.
func (s *State) estimate(limit, predicted Time) Time {
	if s.policy.Estimates == ByUser || predicted <= 0 {
		return limit
	}
	return min(predicted, limit)
}

// accessOf is the windows that jobs of the class may use.
func (s *State) accessOf(c *class) (string, map[*window]bool) {
	if len(s.windows) == 0 {
		return "", nil
	}
	var names []string
	windows := map[*window]bool{}
	for _, w := range s.windows {
		if w.admits(c.project, c.user, c.names) {
			names = append(names, w.Name)
			windows[w] = true
		}
	}
	slices.Sort(names)
	return strings.Join(names, "\x00"), windows
}
