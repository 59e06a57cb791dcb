package control

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// jobs is the table with its indexes: every job of the table has its UUID in
// byUUID, waiting is how many waiting jobs and tasks they stand for, ended has
// those that are over, oldest first, and next is above every number given.
// Only put, of which a step's change, add and show are the users, writes to it
// once it is loaded.
type jobs struct {
	table   state.Table
	byUUID  map[[16]byte]job.Number
	next    job.Number
	waiting int
	ended   []job.Number
}

func newJobs() jobs { return jobs{byUUID: map[[16]byte]job.Number{}, next: 1} }

func (t *jobs) get(n job.Number) *state.Job { return t.table.Get(n) }

func (t *jobs) all() iter.Seq[*state.Job] { return t.table.All() }

// put replaces old, nil for a new job, by j.
func (t *jobs) put(old, j *state.Job) {
	t.table.Put(j.Number, j)
	t.waiting += j.Queued()
	if old != nil {
		t.waiting -= old.Queued()
	} else {
		t.byUUID[j.UUID] = j.Number
		t.next = max(t.next, j.Number+1)
	}
	if j.State.Final() && (old == nil || !old.State.Final()) {
		t.ended = append(t.ended, j.Number)
	}
}

// remove takes the job out that ended first.
func (t *jobs) remove(j *state.Job) {
	t.ended = t.ended[1:]
	t.table.Put(j.Number, nil)
	delete(t.byUUID, j.UUID)
}

// sortEnded puts the ended jobs in the order they ended, after a load: tasks
// before their array.
func (t *jobs) sortEnded() {
	slices.SortFunc(t.ended, func(a, b job.Number) int {
		return cmp.Or(cmp.Compare(t.get(a).Ended, t.get(b).Ended), cmp.Compare(t.get(b).Parent, t.get(a).Parent), cmp.Compare(a, b))
	})
}

// count is how many waiting jobs and tasks there are.
func (t *jobs) count() (waiting int) {
	for j := range t.all() {
		waiting += j.Queued()
	}
	return waiting
}

func (t *jobs) check() error {
	for j := range t.all() {
		if t.byUUID[j.UUID] != j.Number {
			return fmt.Errorf("job %d: its UUID leads to job %d", j.Number, t.byUUID[j.UUID])
		}
	}
	if n := t.count(); n != t.waiting {
		return fmt.Errorf("counted %d queued jobs, kept count is %d", n, t.waiting)
	}
	return nil
}
