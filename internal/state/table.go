package state

import (
	"fmt"
	"iter"
	"maps"

	"gbatch/internal/job"
)

const pageSize = 256

type page [pageSize]*Job

// Table holds jobs by number, copied on write by pages so that a snapshot
// costs one pointer a page: 32 KiB for a million jobs.
type Table struct {
	first  uint64 // page number of pages[0]
	pages  []*page
	shared []bool // pages[i] may be in a snapshot: copy before writing
	count  int
	states map[job.State]int // how many jobs show which
}

func (t *Table) Get(n job.Number) *Job {
	p := uint64(n) / pageSize
	if p < t.first || p-t.first >= uint64(len(t.pages)) {
		return nil
	}
	pg := t.pages[p-t.first]
	if pg == nil {
		return nil
	}
	return pg[uint64(n)%pageSize]
}

// Put stores j, or removes the job when j is nil.
func (t *Table) Put(n job.Number, j *Job) {
	p := uint64(n) / pageSize
	if len(t.pages) == 0 {
		t.first = p
	}
	for p < t.first { // records may be loaded in any order
		t.pages = append([]*page{nil}, t.pages...)
		t.shared = append([]bool{false}, t.shared...)
		t.first--
	}
	for p-t.first >= uint64(len(t.pages)) {
		t.pages = append(t.pages, nil)
		t.shared = append(t.shared, false)
	}
	i := p - t.first
	switch {
	case t.pages[i] == nil:
		t.pages[i] = new(page)
		t.shared[i] = false
	case t.shared[i]:
		pg := *t.pages[i]
		t.pages[i] = &pg
		t.shared[i] = false
	}
	slot := &t.pages[i][uint64(n)%pageSize]
	t.tell(*slot, -1)
	t.tell(j, 1)
	*slot = j
}

// tell counts a job that comes or goes; nil: none does.
func (t *Table) tell(j *Job, by int) {
	if j == nil {
		return
	}
	if t.states == nil {
		t.states = map[job.State]int{}
	}
	t.count += by
	state := j.Status()
	if t.states[state] += by; t.states[state] == 0 {
		delete(t.states, state)
	}
}

// Recount counts anew, when of jobs that were loaded the tasks are known.
func (t *Table) Recount() {
	t.count, t.states = 0, nil
	for j := range t.All() {
		t.tell(j, 1)
	}
}

// Check finds a count that is wrong.
func (t *Table) Check() error {
	again := Table{first: t.first, pages: t.pages}
	again.Recount()
	if t.count != again.count || !maps.Equal(t.states, again.states) {
		return fmt.Errorf("counted %d jobs, by state %v, kept counts are %d and %v", again.count, again.states, t.count, t.states)
	}
	return nil
}

// Trim forgets leading pages that hold nothing, so that the table's size
// follows the jobs that are there and not the numbers ever given.
func (t *Table) Trim() {
	n := 0
	for n < len(t.pages)-1 && (t.pages[n] == nil || *t.pages[n] == page{}) {
		n++
	}
	t.pages, t.shared, t.first = t.pages[n:], t.shared[n:], t.first+uint64(n)
}

// Snapshot is the table as it is now; later puts do not change it.
func (t *Table) Snapshot() Table {
	for i := range t.shared {
		t.shared[i] = true
	}
	return Table{first: t.first, pages: append([]*page(nil), t.pages...), count: t.count, states: maps.Clone(t.states)}
}

// All yields the jobs by number.
func (t *Table) All() iter.Seq[*Job] { return t.from(0) }

// from yields those on the page of a number and later.
func (t *Table) from(n job.Number) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		skip := min(max(uint64(n)/pageSize, t.first)-t.first, uint64(len(t.pages)))
		for _, pg := range t.pages[skip:] {
			if pg == nil {
				continue
			}
			for _, j := range pg {
				if j != nil && !yield(j) {
					return
				}
			}
		}
	}
}
