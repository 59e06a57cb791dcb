package array

import (
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Set is the arrays that are not over. It is rebuilt at a load.
type Set struct {
	arrays  map[job.Number]*Array
	changed []job.Number                // to be looked at before the step ends
	waiters map[job.Number][]job.Number // arrays whose tasks wait for those of one, one by one
}

// NewSet is one without arrays.
func NewSet() *Set {
	return &Set{arrays: map[job.Number]*Array{}, waiters: map[job.Number][]job.Number{}}
}

// Of is the array with that number; nil if it is over, or none.
func (s *Set) Of(n job.Number) *Array { return s.arrays[n] }

// Add takes in an array that is not over. Its tasks that are jobs come by Live.
func (s *Set) Add(p *state.Job, jobs *state.Table) {
	s.arrays[p.Number] = &Array{live: map[int]job.Number{}, Image: p.Tasks.Image}
	s.awaitTasks(p, jobs)
}

// Live takes in a task that is a job and not over.
func (s *Set) Live(j *state.Job) {
	if a := s.arrays[j.Parent]; a != nil && !j.State.Final() {
		a.live[j.Index] = j.Number
		a.count(j, +1)
	}
}

// Remove forgets an array that is over: those whose tasks wait for its tasks look
// at it for the last time.
func (s *Set) Remove(p *state.Job) {
	delete(s.arrays, p.Number)
	for _, n := range p.Waits.Arrays() {
		if s.waiters[n] = slices.DeleteFunc(s.waiters[n], func(w job.Number) bool { return w == p.Number }); len(s.waiters[n]) == 0 {
			delete(s.waiters, n)
		}
	}
	for _, w := range s.waiters[p.Number] {
		s.Touch(w)
	}
	delete(s.waiters, p.Number)
}

// Touch makes the end of the step look at an array.
func (s *Set) Touch(n job.Number) {
	if !slices.Contains(s.changed, n) {
		s.changed = append(s.changed, n)
	}
}

// Changed is the arrays to be looked at, by number; they are not given again. One
// that ends another may have ended it since.
func (s *Set) Changed() []job.Number {
	out := s.changed
	s.changed = nil
	slices.Sort(out)
	return out
}

// Pending says whether there are arrays to be looked at.
func (s *Set) Pending() bool { return len(s.changed) > 0 }

// TaskChanged takes in that a task which is a job has changed.
func (s *Set) TaskChanged(old, j *state.Job) {
	a := s.arrays[j.Parent]
	if a == nil {
		return // over, with its tasks
	}
	a.count(old, -1)
	a.count(j, +1)
	if j.First > 0 && old.First == 0 && (a.Begun == 0 || j.First < a.Begun) {
		a.Begun = j.First
	}
	// What was only pulled may be a broken image, which is put right while others wait.
	if a.Image == "" && j.First > 0 && j.Attempt != nil && j.Attempt.Image != "" {
		a.Image = j.Attempt.Image
		s.Touch(j.Parent)
	}
	if !old.State.Final() && j.State.Final() {
		delete(a.live, j.Index)
		a.Ended = append(a.Ended, j.Number)
	}
	if old.State != j.State {
		s.Touch(j.Parent)
	}
}

// TasksChanged takes in that tasks of an array, by index, are in other states,
// for those whose tasks wait for them.
func (s *Set) TasksChanged(n job.Number, indexes []int) {
	for _, w := range s.waiters[n] {
		s.arrays[w].awaited = append(s.arrays[w].awaited, indexes...)
		s.Touch(w)
	}
}

// Numbers is the arrays, in no order.
func (s *Set) Numbers(yield func(job.Number) bool) {
	for n := range s.arrays {
		if !yield(n) {
			return
		}
	}
}
