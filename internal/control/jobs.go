package control

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"gbatch/accounting"
	"gbatch/internal/control/array"
	"gbatch/internal/control/depend"
	"gbatch/internal/control/effects"
	"gbatch/internal/control/idle"
	"gbatch/internal/control/ledger"
	"gbatch/internal/control/quota"
	"gbatch/internal/control/templates"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// jobs is the table with its indexes: every job of the table has its UUID in
// byUUID, waiting is how many waiting jobs and tasks they stand for, ended has
// those that are over, oldest first, and next is above every number given.
//
// Once it is loaded the table is written by change, show and add alone, which
// tell the parts that keep something of a job what it is now.
type jobs struct {
	table    state.Table
	byUUID   map[[16]byte]job.Number
	next     job.Number
	loaded   job.Number // next after the load: jobs below were there before this start
	waiting  int
	loadedAt sched.Time // when this start began to decide
	ended    []job.Number
	owned    *quota.Book

	arrays    *array.Set
	depends   *depend.Set
	templates *templates.Set
	limits    *limits
	warnings  *warnings
	idle      idle.Jobs
	queue     *queue
	ledger    *ledger.Ledger
	out       *effects.Output
	cfg       *Config
	intern    *state.Interner
}

func (t *jobs) get(n job.Number) *state.Job { return t.table.Get(n) }

func (t *jobs) all() iter.Seq[*state.Job] { return t.table.All() }

// put replaces old, nil for a new job, by j.
func (t *jobs) put(old, j *state.Job) {
	t.table.Put(j.Number, j)
	t.owned.Put(old, j)
	t.waiting += j.Waiting()
	if old != nil {
		t.waiting -= old.Waiting()
	} else {
		t.byUUID[j.UUID] = j.Number
		t.next = max(t.next, j.Number+1)
	}
	if j.State.Final() && (old == nil || !old.State.Final()) {
		t.ended = append(t.ended, j.Number)
	}
}

// skipTo has jobs get numbers from n on.
func (t *jobs) skipTo(n job.Number) {
	t.next = max(t.next, n)
	t.out.Store(state.Record{Kind: state.KindFloor, Job: t.next, Value: []byte("{}")})
}

// evict moves jobs that ended long ago out of the table into history, a
// bounded number each time so that no step takes long.
func (t *jobs) evict() {
	const most = 512
	done := 0
	for done < most && len(t.ended) > 0 && !t.depends.Pending() && !t.arrays.Pending() { // who waits for one, and its array, hear of its end first
		j := t.get(t.ended[0])
		if len(t.ended) <= t.cfg.KeepCount && t.out.Now-j.Ended < t.cfg.KeepEnded {
			break
		}
		t.ended = t.ended[1:]
		t.table.Put(j.Number, nil)
		delete(t.byUUID, j.UUID)
		t.out.Store(state.Record{Kind: state.KindJob, Job: j.Number})
		if !t.out.NoRecords {
			t.out.Store(state.Record{Kind: state.KindHistory, Job: j.Number, Value: j.EncodeHistory()})
		}
		if j.Tasks != nil {
			t.out.Store(j.Tasks.Dropped(j.Number)...)
		}
		t.out.Store(state.Record{Kind: state.KindUUID, Name: string(j.UUID[:]), Job: j.Number, Value: []byte{}})
		done++
	}
	if done > 0 {
		t.table.Trim()
	}
}

// sortEnded puts the ended jobs in the order they ended, after a load: tasks
// before their array.
func (t *jobs) sortEnded() {
	slices.SortFunc(t.ended, func(a, b job.Number) int {
		return cmp.Or(cmp.Compare(t.get(a).Ended, t.get(b).Ended), cmp.Compare(t.get(b).Parent, t.get(a).Parent), cmp.Compare(a, b))
	})
}

// recount counts anew, when of loaded arrays the tasks are known.
func (t *jobs) recount() {
	t.waiting = t.count()
	for j := range t.all() {
		t.next = max(t.next, j.Number+1)
	}
	t.owned.Recount(&t.table)
}

// count is how many waiting jobs and tasks there are.
func (t *jobs) count() (waiting int) {
	for j := range t.all() {
		waiting += j.Waiting()
	}
	return waiting
}

// charges is what all that runs costs.
func (t *jobs) charges() (running []accounting.Charge) {
	for j := range t.all() {
		if j.Holds() {
			running = append(running, ledger.Charges(j)...)
		}
	}
	return running
}

func (t *jobs) check() error {
	for j := range t.all() {
		switch {
		case t.byUUID[j.UUID] != j.Number:
			return fmt.Errorf("job %d: its UUID leads to job %d", j.Number, t.byUUID[j.UUID])
		case j.Number >= t.next:
			return fmt.Errorf("job %d: the next one is to be %d", j.Number, t.next)
		}
	}
	if n := t.count(); n != t.waiting {
		return fmt.Errorf("counted %d queued jobs, kept count is %d", n, t.waiting)
	}
	return t.owned.Check(&t.table)
}
