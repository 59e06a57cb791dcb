package state

import (
	"fmt"
	"iter"
	"maps"
	"math/bits"

	"gbatch/internal/job"
)

const pageSize = 256

// Page is jobs whose numbers follow each other. One of a snapshot never changes: what is found out about it holds for as
// long as the table has it.
type Page struct {
	jobs [pageSize]*Job
	live [pageSize / 64]uint64 // a bit for each that is not over
}

// Table holds jobs by number, copied on write by pages so that a snapshot
// costs one pointer a page: 32 KiB for a million jobs.
type Table struct {
	first  uint64 // page number of pages[0]
	pages  []*Page
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
	return pg.jobs[uint64(n)%pageSize]
}

// Put stores j, or removes the job when j is nil.
func (t *Table) Put(n job.Number, j *Job) {
	p := uint64(n) / pageSize
	if len(t.pages) == 0 {
		t.first = p
	}
	for p < t.first { // records may be loaded in any order
		t.pages = append([]*Page{nil}, t.pages...)
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
		t.pages[i] = new(Page)
		t.shared[i] = false
	case t.shared[i]:
		pg := *t.pages[i]
		t.pages[i] = &pg
		t.shared[i] = false
	}
	at := uint64(n) % pageSize
	slot := &t.pages[i].jobs[at]
	t.tell(*slot, -1)
	t.tell(j, 1)
	*slot = j
	word, bit := &t.pages[i].live[at/64], uint64(1)<<(at%64)
	if *word &^= bit; j != nil && !j.State.Final() {
		*word |= bit
	}
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
	live := 0
	for j := range t.Live() {
		if live++; j.State.Final() {
			return fmt.Errorf("job %d is %s, and kept as one that is not over", j.Number, j.State)
		}
	}
	for j := range t.All() {
		if !j.State.Final() {
			live--
		}
	}
	if live != 0 {
		return fmt.Errorf("%d jobs more than there are, or fewer if it is negative, are kept as not over", live)
	}
	return nil
}

// Trim forgets leading pages that hold nothing, so that the table's size
// follows the jobs that are there and not the numbers ever given.
func (t *Table) Trim() {
	n := 0
	for n < len(t.pages)-1 && (t.pages[n] == nil || *t.pages[n] == Page{}) {
		n++
	}
	t.pages, t.shared, t.first = t.pages[n:], t.shared[n:], t.first+uint64(n)
}

// Snapshot is the table as it is now; later puts do not change it.
func (t *Table) Snapshot() Table {
	for i := range t.shared {
		t.shared[i] = true
	}
	return Table{first: t.first, pages: append([]*Page(nil), t.pages...), count: t.count, states: maps.Clone(t.states)}
}

// All yields the jobs by number.
func (t *Table) All() iter.Seq[*Job] { return t.from(0) }

// from yields those on the page of a number and later.
func (t *Table) from(n job.Number) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for _, pg := range t.pagesFrom(n) {
			for _, j := range pg.jobs[:] { // no copy of the page
				if j != nil && !yield(j) {
					return
				}
			}
		}
	}
}

// Live yields the jobs that are not over by number. It looks at no others.
func (t *Table) Live() iter.Seq[*Job] { return t.liveFrom(0) }

// liveFrom yields those on the page of a number and later.
func (t *Table) liveFrom(n job.Number) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for _, pg := range t.pagesFrom(n) {
			for i, word := range pg.live {
				for ; word != 0; word &= word - 1 {
					if !yield(pg.jobs[i*64+bits.TrailingZeros64(word)]) {
						return
					}
				}
			}
		}
	}
}

// Pages yields the pages by their numbers.
func (t *Table) Pages() iter.Seq2[uint64, *Page] { return t.pagesFrom(0) }

// pagesFrom yields that of a job's number and later.
func (t *Table) pagesFrom(n job.Number) iter.Seq2[uint64, *Page] {
	return func(yield func(uint64, *Page) bool) {
		skip := min(max(uint64(n)/pageSize, t.first)-t.first, uint64(len(t.pages)))
		for i, pg := range t.pages[skip:] {
			if pg != nil && !yield(t.first+skip+uint64(i), pg) {
				return
			}
		}
	}
}

// Ended yields the jobs of a page that are over by number, or from the last one back.
func (p *Page) Ended(backward bool) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for i := range p.jobs {
			if backward {
				i = pageSize - 1 - i
			}
			if j := p.jobs[i]; j != nil && p.live[i/64]>>(i%64)&1 == 0 && !yield(j) {
				return
			}
		}
	}
}
