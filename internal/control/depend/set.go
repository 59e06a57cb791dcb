package depend

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Set is who waits for whom. It is rebuilt at a load.
type Set struct {
	on    map[job.Number]map[job.Number]bool // for each job that others wait for, those others
	tasks map[job.Number]map[int]int         // for each array, how many wait for which tasks that are no jobs yet

	updates []update // jobs that began or ended, whose dependents were not all notified yet
	names   names
}

// NewSet is one in which nobody waits.
func NewSet() *Set {
	return &Set{on: map[job.Number]map[job.Number]bool{}, tasks: map[job.Number]map[int]int{}, names: names{}}
}

// Add takes in what a job waits for.
func (s *Set) Add(j *state.Job) {
	for _, n := range Awaits(j) {
		if s.on[n.Job] == nil {
			s.on[n.Job] = map[job.Number]bool{}
		}
		s.on[n.Job][j.Number] = true
		if n.Task == nil {
			continue
		}
		if s.tasks[n.Job] == nil {
			s.tasks[n.Job] = map[int]int{}
		}
		s.tasks[n.Job][*n.Task]++
	}
}

// Drop is the inverse of Add.
func (s *Set) Drop(j *state.Job) {
	for _, n := range Awaits(j) {
		if delete(s.on[n.Job], j.Number); len(s.on[n.Job]) == 0 {
			delete(s.on, n.Job)
		}
		if n.Task == nil {
			continue
		}
		tasks := s.tasks[n.Job]
		if tasks[*n.Task]--; tasks[*n.Task] == 0 {
			delete(tasks, *n.Task)
		}
		if len(tasks) == 0 {
			delete(s.tasks, n.Job)
		}
	}
}

// update is that a job began or ended.
type update struct {
	of   job.Number
	seen job.Number // its dependents up to this one were notified
}

// Notify puts a job that began or ended before those that wait for it.
func (s *Set) Notify(n job.Number) {
	if len(s.on[n]) > 0 {
		s.updates = append(s.updates, update{of: n})
	}
}

// AwaitsTask says whether somebody waits for one of an array's tasks that are no
// jobs yet.
func (s *Set) AwaitsTask(n job.Number, indexes []int) bool {
	tasks := s.tasks[n]
	return len(tasks) > 0 && slices.ContainsFunc(indexes, func(i int) bool { return tasks[i] > 0 })
}

// Pending says whether somebody is to be notified still.
func (s *Set) Pending() bool { return len(s.updates) > 0 }

// Notified visits the dependents of jobs that began or ended, and the job that
// did. It goes on until nothing follows any more, or most are done.
func (s *Set) Notified(most int, visit func(waiting, awaited job.Number)) {
	for done := 0; len(s.updates) > 0; {
		of := s.updates[0].of
		for _, n := range slices.Sorted(maps.Keys(s.on[of])) {
			u := &s.updates[0] // visits may have added more
			switch {
			case n <= u.seen:
				continue
			case done == most:
				return
			}
			done++
			u.seen = n
			visit(n, of)
		}
		s.updates = s.updates[1:]
	}
	s.updates = nil
}

// Load rebuilds who waits for whom, and notifies again of jobs that had begun or
// ended when the controller stopped.
func (s *Set) Load(jobs *state.Table) {
	for j := range jobs.All() {
		s.Add(j)
	}
	for _, n := range slices.Sorted(maps.Keys(s.on)) {
		if j := jobs.Get(n); j != nil && (j.State.Final() || j.Started > 0) {
			s.updates = append(s.updates, update{of: n})
		}
	}
}

// Check verifies that the index is right and that nobody waits for a job
// that is gone.
func (s *Set) Check(jobs *state.Table) error {
	want := NewSet()
	for j := range jobs.All() {
		want.Add(j)
		for _, n := range Awaits(j) {
			notified := slices.ContainsFunc(s.updates, func(x update) bool { return x.of == n.Job })
			switch a := jobs.Get(n.Job); {
			case a == nil:
				return fmt.Errorf("job %d waits for %s, which is not in the table", j.Number, n.Who())
			case a.State.Final() && !notified:
				return fmt.Errorf("job %d waits for %s, and job %d is %s", j.Number, n.Who(), a.Number, a.State)
			case n.Task == nil || notified:
			default:
				if st, ok := a.Tasks.State(*n.Task); !ok || st != state.TaskPending {
					return fmt.Errorf("job %d waits for %s, which is %q", j.Number, n.Who(), st)
				}
			}
		}
		if j.Waits.Unmet() && (j.State.Active() || j.State == job.Finished) {
			return fmt.Errorf("job %d is %s and waits for others", j.Number, j.State)
		}
	}
	if !reflect.DeepEqual(want.on, s.on) || !reflect.DeepEqual(want.tasks, s.tasks) {
		return fmt.Errorf("the index of who waits for whom has %d jobs, want %d, or others", len(s.on), len(want.on))
	}
	return nil
}
