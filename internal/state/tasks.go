package state

import (
	"fmt"
	"slices"
	"sort"

	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
)

// TaskState is what became of a task of an array.
type TaskState byte

// The states of a task, as they are stored.
const (
	TaskPending   TaskState = 0   // it is no job of its own yet
	TaskLive      TaskState = 'l' // it is, and not over
	TaskSucceeded TaskState = 's'
	TaskFailed    TaskState = 'f'
	TaskCancelled TaskState = 'c'
	TaskMissed    TaskState = 'd' // cancelled: what it waited for cannot happen any more; it never was a job
)

// Array is the tasks that a job has, by what was asked. Immutable.
type Array struct {
	job.Tasks
	All    indexes.Set
	Enough indexes.Set // that count for EnoughCount
	starts []int       // position of the first index of each range of All
}

// NewArray reads the words of a document that was checked.
func NewArray(t job.Tasks) (*Array, error) {
	all, err := indexes.Parse(t.Indexes)
	if err != nil {
		return nil, fmt.Errorf("tasks: indexes: %w", err)
	}
	a := &Array{Tasks: t, All: all, Enough: all}
	if t.EnoughIndexes != "" {
		if a.Enough, err = indexes.Parse(t.EnoughIndexes); err != nil {
			return nil, fmt.Errorf("tasks: enoughIndexes: %w", err)
		}
	}
	at := 0
	for _, r := range all {
		a.starts = append(a.starts, at)
		at += r.Last - r.First + 1
	}
	return a, nil
}

// Index is the index of the task at a position, counted from 0.
func (a *Array) Index(position int) int {
	k := sort.SearchInts(a.starts, position+1) - 1
	return a.All[k].First + position - a.starts[k]
}

// Position is the inverse of index.
func (a *Array) Position(index int) (int, bool) {
	k, ok := slices.BinarySearchFunc(a.All, index, func(r indexes.Range, i int) int {
		switch {
		case r.Last < i:
			return -1
		case r.First > i:
			return 1
		}
		return 0
	})
	if !ok {
		return 0, false
	}
	return a.starts[k] + index - a.All[k].First, true
}

// blockSize is how many tasks share a record: what one task's end costs on disk.
const blockSize = 512

type block [blockSize]TaskState

// Tasks is how far the tasks of an array are. Immutable like the Job that holds
// it; blocks that hold one state only are shared by all. The states are stored
// apart from the job, in blocks, so that the end of a task writes little however
// many tasks there are, and in history, where nothing changes any more, with it.
type Tasks struct {
	*Array   `json:"-"`
	Counts   map[TaskState]int `json:"-"`
	Enough   int               `json:"-"`                  // that have succeeded and count as enough
	Failures int               `json:"failures,omitempty"` // attempts of tasks that failed and count against Retry.JobLimit
	First    []string          `json:"first,omitempty"`    // the first tasks that failed, and why
	Image    string            `json:"image,omitempty"`    // digest that the first task which began runs; the others run that one

	*TaskHistory // only while a record of history is encoded or decoded

	blocks  []*block // by position; nil: all pending
	next    int      // no task before this position is pending
	changed []int    // blocks to be stored
	moved   []int    // positions whose state changed since they were
}

// TaskHistory is what a record of history says of an array: what was asked, and
// which tasks are in which state.
type TaskHistory struct {
	Asked     *job.Tasks `json:"asked,omitempty"`
	Succeeded string     `json:"succeeded,omitempty"`
	Failed    string     `json:"failed,omitempty"`
	Missed    string     `json:"missed,omitempty"`
	Cancelled string     `json:"cancelled,omitempty"`
}

// firstFailures is how many failures a job tells of in words.
const firstFailures = 3

// NoteFailure keeps what is said of one of the first failures, in a clone.
func (t *Tasks) NoteFailure(text string) {
	if len(t.First) < firstFailures {
		t.First = append(slices.Clip(t.First), text)
	}
}

func NewTasks(a *Array) *Tasks {
	n := a.All.Len()
	return &Tasks{Array: a, Counts: map[TaskState]int{TaskPending: n}, blocks: make([]*block, (n+blockSize-1)/blockSize)}
}

// Len is the number of tasks.
func (t *Tasks) Len() int { return t.All.Len() }

// State is what became of the task with an index; ok is false if there is none.
func (t *Tasks) State(index int) (s TaskState, ok bool) {
	p, ok := t.Position(index)
	if !ok {
		return 0, false
	}
	return t.At(p), true
}

func (t *Tasks) At(position int) TaskState {
	if b := t.blocks[position/blockSize]; b != nil {
		return b[position%blockSize]
	}
	return TaskPending
}

// Clone is a copy to be changed by set before it is given away.
func (t *Tasks) Clone() *Tasks {
	c := *t
	c.blocks, c.changed, c.moved = slices.Clone(t.blocks), nil, nil
	c.Counts = make(map[TaskState]int, len(t.Counts))
	for s, n := range t.Counts { // into a map: order does not matter
		c.Counts[s] = n
	}
	return &c
}

// Set puts a task into another state, in a clone.
func (t *Tasks) Set(position int, s TaskState) {
	k := position / blockSize
	if n := len(t.changed); (n == 0 || t.changed[n-1] != k) && !slices.Contains(t.changed, k) {
		t.changed = append(t.changed, k)
		b := block{}
		if t.blocks[k] != nil {
			b = *t.blocks[k]
		}
		t.blocks[k] = &b
	}
	slot := &t.blocks[k][position%blockSize]
	t.Counts[*slot]--
	t.Counts[s]++
	if s == TaskSucceeded && t.Array.Enough.Has(t.Index(position)) {
		t.Enough++
	}
	*slot = s
	t.moved = append(t.moved, position)
}

// NextPending is the first position from t.next on whose task is pending; it
// moves next there.
func (t *Tasks) NextPending() (int, bool) {
	if t.Counts[TaskPending] == 0 {
		return 0, false
	}
	for t.At(t.next) != TaskPending {
		t.next++
	}
	return t.next, true
}

// uniform are blocks that all arrays share.
var uniform = func() map[TaskState]*block {
	out := map[TaskState]*block{}
	for _, s := range []TaskState{TaskSucceeded, TaskFailed, TaskCancelled, TaskMissed} {
		b := block{}
		for i := range b {
			b[i] = s
		}
		out[s] = &b
	}
	return out
}()

// share replaces changed blocks that hold one state only.
func (t *Tasks) share() {
	for _, k := range t.changed {
		if u := uniform[t.blocks[k][0]]; u != nil && *u == *t.blocks[k] {
			t.blocks[k] = u
		}
	}
}

// In is the tasks that are in one of these states.
func (t *Tasks) In(states ...TaskState) indexes.Set {
	var out indexes.Set
	p := 0
	for _, r := range t.All {
		for i := r.First; i <= r.Last; {
			n := min(t.alike(p), r.Last-i+1)
			if slices.Contains(states, t.At(p)) {
				if k := len(out) - 1; k >= 0 && out[k].Last == i-1 {
					out[k].Last = i + n - 1
				} else {
					out = append(out, indexes.Range{First: i, Last: i + n - 1})
				}
			}
			i, p = i+n, p+n
		}
	}
	return out
}

// Cancelled is the tasks that were cancelled, those that could never start too.
func (t *Tasks) Cancelled() indexes.Set { return t.In(TaskCancelled, TaskMissed) }

// NumCancelled is how many they are.
func (t *Tasks) NumCancelled() int { return t.Counts[TaskCancelled] + t.Counts[TaskMissed] }

// alike is how many tasks from a position on are known to be in its state
// without looking at them.
func (t *Tasks) alike(position int) int {
	b := t.blocks[position/blockSize]
	if b == nil || b == uniform[b[0]] {
		return blockSize - position%blockSize
	}
	return 1
}
