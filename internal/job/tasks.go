package job

import (
	"fmt"

	"gbatch/internal/document"
	"gbatch/internal/job/indexes"
)

// Tasks makes a job an array: the same request once for each index.
type Tasks struct {
	Indexes     string `json:"indexes"`               // as "0-9,20-40:5"; canonical: ascending, no overlap
	Parallelism int    `json:"parallelism,omitempty"` // most that are active at once; 0: no bound

	// What makes the whole job fail before all tasks have ended. By default the
	// others run on, and the job fails in the end.
	FailFast  bool `json:"failFast,omitempty"`  // the first failed task ends the others
	MaxFailed *int `json:"maxFailed,omitempty"` // more failed tasks than this end the others

	// What makes it succeed before; the tasks that are left are cancelled.
	EnoughIndexes string `json:"enoughIndexes,omitempty"` // these have succeeded; empty with EnoughCount 0: all
	EnoughCount   int    `json:"enoughCount,omitempty"`   // this many (of these) have succeeded

	// Reuse lets tasks run one after the other in a container, each with its own processes.
	Reuse bool `json:"reuse,omitempty"`
}

// ArrayTask is what a task is told of the array that it is one of.
type ArrayTask struct {
	Parent Number `json:"parent"` // number of the array
	Index  int    `json:"index"`
	First  int    `json:"first"` // lowest and highest index of all
	Last   int    `json:"last"`
	Count  int    `json:"count"`
	Step   int    `json:"step,omitempty"` // see indexes.Set.Step
}

// Tasks are those of the job; nil: it is no array.
func (s *Spec) Tasks() *Tasks { return s.gbatch().Tasks }

// Len is the number of tasks; of a job that is no array 1.
func (t *Tasks) Len() int {
	if t == nil {
		return 1
	}
	set, err := indexes.Parse(t.Indexes)
	if err != nil {
		return 1
	}
	return set.Len()
}

// MaxTasks bounds the tasks of one job.
const MaxTasks = indexes.Max

var tasksFields = []field[Tasks]{
	{"indexes", func(d *decoder, n *node, t *Tasks) { d.indexes(n, &t.Indexes) }, true},
	{"parallelism", func(d *decoder, n *node, t *Tasks) { d.integer(n, &t.Parallelism, 1, MaxTasks) }, false},
	{"failFast", func(d *decoder, n *node, t *Tasks) { d.boolean(n, &t.FailFast) }, false},
	{"maxFailed", func(d *decoder, n *node, t *Tasks) { t.MaxFailed = d.optional(n, 0, MaxTasks) }, false},
	{"enoughIndexes", func(d *decoder, n *node, t *Tasks) { d.indexes(n, &t.EnoughIndexes) }, false},
	{"enoughCount", func(d *decoder, n *node, t *Tasks) { d.integer(n, &t.EnoughCount, 1, MaxTasks) }, false},
	{"reuse", func(d *decoder, n *node, t *Tasks) { d.boolean(n, &t.Reuse) }, false},
}

// readTasks reads an object, or the indexes alone: "0-99%8" as in Slurm, or a
// number of tasks.
func readTasks(d *decoder, n *node, g *Gbatch) {
	var t Tasks
	switch n.Kind {
	case document.NumberKind:
		var count int
		d.integer(n, &count, 1, MaxTasks)
		t.Indexes = indexes.First(count)
	case document.StringKind:
		set, most, err := indexes.ParseArray(n.Text)
		if err != nil {
			d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(n.Text), err), arrayHint)
			return
		}
		t.Indexes, t.Parallelism = set.String(), most
	default:
		if !document.Object(d, n, tasksFields, &t) {
			return
		}
	}
	all, err := indexes.Parse(t.Indexes)
	if err != nil {
		return // told already
	}
	d.checkTasks(n, &t, all)
	g.Tasks = &t
}

const arrayHint = `write "0-99", "1,5,7-20:2" or, for at most 8 at once, "0-99%8"`

func (d *decoder) checkTasks(n *node, t *Tasks, all indexes.Set) {
	if t.FailFast && t.MaxFailed != nil {
		d.ProblemAt(n, "failFast", "is the same as a maxFailed of 0, which is given too", "keep one of them")
	}
	enough, err := indexes.Parse(t.EnoughIndexes)
	if err != nil || t.EnoughIndexes == "" {
		enough = all
	}
	if !enough.Within(all) {
		d.ProblemAt(n, "enoughIndexes", fmt.Sprintf("has indexes that the job has not: its indexes are %s", all), "")
	}
	if t.EnoughCount > enough.Len() {
		d.ProblemAt(n, "enoughCount", fmt.Sprintf("must be at most %d, the number of tasks that it counts, is %d", enough.Len(), t.EnoughCount), "")
	}
}

// indexes reads a set of indexes and keeps it in its canonical form.
func (d *decoder) indexes(n *node, to *string) {
	if n.Kind != document.StringKind {
		d.WrongKind(n, `a string such as "0-99"`)
		return
	}
	set, err := indexes.Parse(n.Text)
	if err != nil {
		d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(n.Text), err), arrayHint)
		return
	}
	*to = set.String()
}

// optional reads a whole number for which 0 is something else than nothing.
func (d *decoder) optional(n *node, low, high int) *int {
	var x int
	before := d.Count()
	if d.integer(n, &x, low, high); d.Count() > before {
		return nil
	}
	return &x
}
