// Package given is which tasks of arrays their nodes were given ahead: each is behind another one,
// whose place it has when that has ended. It knows who may be, and who is no more; what follows is
// done by the controller. It is pure.
package given

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"gbatch/internal/control/moments"
	"gbatch/internal/control/ranks"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// most is how many tasks are behind one that runs, at most; Time is how long they may be
// expected to run together: so much later is somebody served whom nobody knew of. A task that
// runs for twice that keeps nobody behind it.
const (
	most     = 16
	mostMade = 2 // of those that have a container each, which is made while they wait
	Time     = sched.Second / 2
)

// Set is who is to have the place of whom. The controller owns the one there is.
type Set struct {
	ran  map[Kind]sched.Time       // for how long they run, about: the longest of late
	next map[job.Number]job.Number // of a job, the one behind it
	on   map[string]int            // how many are behind others on a node
	due  moments.List              // when those behind a job that holds something have waited for long
}

// Put notes that a job is behind another one.
func (s *Set) Put(before, j *state.Job) {
	if s.next == nil {
		s.next, s.on = map[job.Number]job.Number{}, map[string]int{}
	}
	s.next[before.Number] = j.Number
	s.on[nodeOf(j)]++
	s.Watch(before)
}

// Watch notes until when those behind a job may wait for it.
func (s *Set) Watch(before *state.Job) {
	if before.Holds() && s.next[before.Number] > 0 {
		s.due.Add(moments.Moment{At: before.Attempt.Start + 2*Time, Job: before.Number})
	}
}

// Drop forgets who is behind a job on a node.
func (s *Set) Drop(before job.Number, node string) {
	delete(s.next, before)
	if s.on[node]--; s.on[node] == 0 {
		delete(s.on, node)
	}
}

// Next is who is behind a job; 0: nobody is.
func (s *Set) Next(n job.Number) job.Number { return s.next[n] }

// Behind is all who are behind a job, the next one first.
func (s *Set) Behind(n job.Number) iter.Seq[job.Number] {
	return func(yield func(job.Number) bool) {
		for n = s.next[n]; n > 0 && yield(n); n = s.next[n] {
		}
	}
}

// Concerns says whether a plan may change anything here: most sites have no such jobs, and
// their rounds are to cost nothing by them.
func (s *Set) Concerns(plan *sched.Plan, jobs *state.Table) bool {
	return len(s.on) > 0 || len(s.ran) > 0 && slices.ContainsFunc(plan.Reservations, func(r sched.Reservation) bool { return s.May(jobs.Get(job.Number(r.Job))) })
}

// Nodes are those on which anybody is behind others.
func (s *Set) Nodes() []string { return slices.Sorted(maps.Keys(s.on)) }

// NextDue is when somebody will have waited for long; false: nobody waits.
func (s *Set) NextDue() (sched.Time, bool) { return s.due.Next() }

// TakeDue is a job behind which others have waited for long, if it still is; false: there is none.
func (s *Set) TakeDue(now sched.Time) (job.Number, bool) {
	m, due := s.due.Take(now)
	return m.Job, due
}

// Check verifies that the jobs say the same.
func (s *Set) Check(jobs *state.Table) error {
	behind, on := 0, 0
	for j := range jobs.All() {
		if !j.State.Active() || j.Holds() {
			continue
		}
		behind++
		if before := jobs.Get(j.Attempt.Behind); before == nil || !before.State.Active() || s.next[before.Number] != j.Number {
			return fmt.Errorf("job %d: it is to have the place of job %d, which does not know of it", j.Number, j.Attempt.Behind)
		}
	}
	for _, n := range s.on { // they are added up: order does not matter
		on += n
	}
	if behind != len(s.next) || behind != on {
		return fmt.Errorf("%d jobs are behind others, and %d and %d are counted", behind, len(s.next), on)
	}
	return s.due.Check()
}

// TakenBack is by how many an attempt that has ended makes those more that a job was given
// ahead and never began.
func TakenBack(e *state.Ending, at *state.Attempt) uint32 {
	if e != nil && e.Ahead && !ranks.Began(at) {
		return 1
	}
	return 0
}

func nodeOf(j *state.Job) string { return j.Attempt.Ranks[0].Alloc.Node }
