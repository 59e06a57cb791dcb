package array

import (
	"container/heap"
	"iter"
	"maps"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Only a window of an array's tasks are jobs, so that an array costs little
// however long it is. These bound the window; it is filled again in the step in
// which a task of it starts or ends.
const (
	maxWaiting = 256  // tasks of one array that wait in the queue
	maxDelayed = 4096 // and with those that wait for their next try
)

// Array is what is known of a parent besides its job. A task is a child here: a
// job whose Parent is the array's.
type Array struct {
	live    map[int]job.Number // children that are not over, by index
	waiting int                // of these: in the queue or held, and never tried again
	delayed int                // in the queue or held, and tried before
	ready   positions          // where tasks wait for those of other arrays: of those that may start
	awaited []int              // indexes of tasks of other arrays that changed, for which tasks of this one wait
	Image   string             // digest that the first task which began runs; empty: none has

	// Since the step before:
	Ended    []job.Number  // children that are over
	Begun    sched.Time    // when one ran for the first time
	Failures int           // that count against Retry.JobLimit
	Whole    *state.Ending // what a child's end means for all
	Held     string        // why all that wait are held
}

// Live are the children that are not over.
func (a *Array) Live() iter.Seq[job.Number] {
	if a == nil {
		return func(func(job.Number) bool) {}
	}
	return maps.Values(a.live)
}

// Room says whether one more task may become a job.
func (a *Array) Room(t *state.Tasks) bool {
	return (t.Parallelism == 0 || len(a.live) < t.Parallelism) && a.waiting < maxWaiting && a.waiting+a.delayed < maxDelayed
}

// Next is the position of the next task that may become a job.
func (a *Array) Next(p *state.Job, t *state.Tasks) (int, bool) {
	if len(p.Waits.Arrays()) == 0 {
		return t.NextPending()
	}
	for len(a.ready) > 0 {
		if at := heap.Pop(&a.ready).(int); t.At(at) == state.TaskPending { // it may have been cancelled
			return at, true
		}
	}
	return 0, false
}

// Children is the tasks that are jobs and not over, by index.
func (a *Array) Children() []job.Number {
	if a == nil {
		return nil
	}
	var out []job.Number
	for _, i := range slices.Sorted(maps.Keys(a.live)) {
		out = append(out, a.live[i])
	}
	return out
}

// Child is the job of the task with an index that is live.
func (a *Array) Child(index int) job.Number { return a.live[index] }

// Quiet says that no task is a job that is not over.
func (a *Array) Quiet() bool { return len(a.live) == 0 }

// count puts a child's state into the counts, or takes it out with sign -1.
func (a *Array) count(j *state.Job, sign int) {
	switch {
	case !j.State.Pending():
	case j.Retried == nil:
		a.waiting += sign
	default:
		a.delayed += sign
	}
}

// positions is a heap: the lowest position first.
type positions []int

func (p positions) Len() int           { return len(p) }
func (p positions) Less(i, j int) bool { return p[i] < p[j] }
func (p positions) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *positions) Push(x any)        { *p = append(*p, x.(int)) }
func (p *positions) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}
