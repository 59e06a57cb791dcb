package control

import (
	"fmt"
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
	arrayWaiting = 256  // tasks of one array that wait in the queue
	arrayDelayed = 4096 // and with those that wait for their next try
)

// array is what the controller knows of a parent besides its job. It is rebuilt
// at a load. A task is a child here: a job whose Parent is the array's.
type array struct {
	live    map[int]job.Number // children that are not over, by index
	waiting int                // of these: in the queue or held, and never tried again
	delayed int                // in the queue or held, and tried before
	ready   positions          // where tasks wait for those of other arrays: of those that may start

	// Since the parent was settled last:
	ended    []job.Number  // children
	begun    sched.Time    // when one ran for the first time
	failures int           // that count against Retry.JobLimit
	whole    *state.Ending // what a child's end means for all
	told     []int         // indexes of tasks of other arrays, for which tasks of this one wait
}

// window says whether one more task may become a job.
func (a *array) window(t *state.Tasks) bool {
	return (t.Parallelism == 0 || len(a.live) < t.Parallelism) && a.waiting < arrayWaiting && a.waiting+a.delayed < arrayDelayed
}

// count puts a child's state into the counts, or takes it out with sign -1.
func (a *array) count(j *state.Job, sign int) {
	switch {
	case !j.State.Pending():
	case j.Retried == nil:
		a.waiting += sign
	default:
		a.delayed += sign
	}
}

// outside is the tasks that wait and are no jobs yet, by whose they are, for
// limits on queued jobs.
func (c *Controller) outside() []sched.Outside {
	var out []sched.Outside
	for n := range c.arrays { // they are added up: order does not matter
		if p := c.job(n); p.Tasks.Counts[state.TaskPending] > 0 {
			out = append(out, sched.Outside{Project: p.Owner.Project, User: p.Owner.User, QOS: p.Owner.QOS, Jobs: p.Tasks.Counts[state.TaskPending]})
		}
	}
	return out
}

// children is the tasks of an array that are not over, by index.
func (c *Controller) children(n job.Number) []*state.Job {
	var out []*state.Job
	if a := c.arrays[n]; a != nil {
		for _, i := range slices.Sorted(maps.Keys(a.live)) {
			out = append(out, c.job(a.live[i]))
		}
	}
	return out
}

// addArray starts to keep a parent that is not over.
func (c *Controller) addArray(n job.Number) { c.arrays[n] = &array{live: map[int]job.Number{}} }

// touch makes the end of the step look at a parent.
func (c *Controller) touch(n job.Number) {
	if !slices.Contains(c.touched, n) {
		c.touched = append(c.touched, n)
	}
}

// taskChanged keeps an array's counts right when a child changes.
func (c *Controller) taskChanged(old, j *state.Job) {
	a := c.arrays[j.Parent]
	if a == nil {
		return // over, with its tasks
	}
	a.count(old, -1)
	a.count(j, +1)
	if j.First > 0 && old.First == 0 && (a.begun == 0 || j.First < a.begun) {
		a.begun = j.First
	}
	if !old.State.Final() && j.State.Final() {
		delete(a.live, j.Index)
		a.ended = append(a.ended, j.Number)
	}
	if old.State != j.State {
		c.touch(j.Parent)
	}
}

// loadArrays rebuilds what is known of arrays, when all records are there.
func (c *Controller) loadArrays() error {
	for p := range c.jobs.All() {
		if p.Tasks == nil || p.Tasks.Array != nil {
			continue
		}
		t, err := state.LoadTasks(c.loading[p.Number], p.Tasks)
		if err != nil {
			return fmt.Errorf("job %d: %w", p.Number, err)
		}
		p.Tasks = t // nobody has seen the job yet
		if !p.State.Final() {
			c.addArray(p.Number)
		}
	}
	for j := range c.jobs.All() {
		if a := c.arrays[j.Parent]; a != nil && !j.State.Final() {
			a.live[j.Index] = j.Number
			a.count(j, +1)
		}
	}
	for p := range c.jobs.All() {
		if a := c.arrays[p.Number]; a != nil {
			c.loadCorr(p, a)
		}
	}
	c.loading = nil
	return nil
}

// checkArrays verifies that each task is in exactly one state, that the counts
// say so, and that a task that is live is exactly one job.
func (c *Controller) checkArrays() error {
	over := map[job.Number]map[int]*state.Job{}
	for j := range c.jobs.All() {
		if j.Parent == 0 {
			continue
		}
		if a := c.arrays[j.Parent]; !j.State.Final() && (a == nil || a.live[j.Index] != j.Number) {
			return fmt.Errorf("job %d is task %s, which has another job or is over", j.Number, j.ID())
		}
		if j.State.Final() {
			if over[j.Parent] == nil {
				over[j.Parent] = map[int]*state.Job{}
			}
			if twin := over[j.Parent][j.Index]; twin != nil {
				return fmt.Errorf("jobs %d and %d are both task %s", twin.Number, j.Number, j.ID())
			}
			over[j.Parent][j.Index] = j
		}
	}
	if len(c.touched) > 0 {
		return fmt.Errorf("arrays %v are not settled", c.touched)
	}
	for p := range c.jobs.All() {
		if p.Tasks == nil {
			continue
		}
		if err := c.checkArray(p, over[p.Number]); err != nil {
			return fmt.Errorf("array %d: %w", p.Number, err)
		}
	}
	return c.checkCorr()
}

func (c *Controller) checkArray(p *state.Job, over map[int]*state.Job) error {
	t, a := p.Tasks, c.arrays[p.Number]
	if (a == nil) != p.State.Final() || p.Attempt != nil {
		return fmt.Errorf("it is %s, is kept %t and has an attempt %t", p.State, a != nil, p.Attempt != nil)
	}
	counts, enough, sum := map[state.TaskState]int{}, 0, 0
	for at := range t.Len() {
		s, i := t.At(at), t.Index(at)
		counts[s]++
		if s == state.TaskSucceeded && t.Array.Enough.Has(i) {
			enough++
		}
		if a != nil && (s == state.TaskLive) != (a.live[i] != 0) {
			return fmt.Errorf("task %d is %q and its job is %d", i, s, a.live[i])
		}
		if j := over[i]; j != nil && s != taskEnd(j.State) {
			return fmt.Errorf("task %d is %q and its job %d %s", i, s, j.Number, j.State)
		}
	}
	for s, n := range t.Counts {
		if counts[s] != n {
			return fmt.Errorf("%d tasks are %q, and it counts %d", counts[s], s, n)
		}
		sum += n
	}
	if sum != t.Len() || enough != t.Enough {
		return fmt.Errorf("it counts %d of %d tasks, and %d of %d as enough", sum, t.Len(), t.Enough, enough)
	}
	if p.State.Final() && counts[state.TaskPending]+counts[state.TaskLive] > 0 {
		return fmt.Errorf("it is %s with %d tasks that are not over", p.State, counts[state.TaskPending]+counts[state.TaskLive])
	}
	if a != nil {
		return c.checkWindow(p, a)
	}
	return nil
}

func (c *Controller) checkWindow(p *state.Job, a *array) error {
	var now array
	for _, j := range c.children(p.Number) {
		now.count(j, +1)
	}
	switch {
	case now.waiting != a.waiting || now.delayed != a.delayed:
		return fmt.Errorf("%d tasks wait and %d for another try, and it counts %d and %d", now.waiting, now.delayed, a.waiting, a.delayed)
	case p.Tasks.Parallelism > 0 && len(a.live) > p.Tasks.Parallelism:
		return fmt.Errorf("%d of its tasks are live, at most %d may be", len(a.live), p.Tasks.Parallelism)
	case len(a.live) == 0 && mayFill(p) && (len(p.Waits.Arrays()) == 0 || len(a.ready) > 0):
		return fmt.Errorf("nothing of it is live, and %d tasks are left", p.Tasks.Counts[state.TaskPending])
	}
	return nil
}

// recordArray stores what was asked of an array, once.
func (c *Controller) recordArray(j *state.Job) {
	if j.Tasks == nil {
		return
	}
	c.storeTasks(j.Number, j.Tasks) // what is known from the beginning
	if !c.cfg.NoRecords {
		c.record(state.Record{Kind: state.KindTasks, Job: j.Number, Value: state.Encode(j.Tasks.Array.Tasks)})
	}
}

// storeTasks records the blocks that changed, and tells those who wait for tasks.
func (c *Controller) storeTasks(n job.Number, t *state.Tasks) {
	moved, blocks := t.Settled(n, !c.cfg.NoRecords)
	c.tellTasks(n, moved)
	c.out.Records = append(c.out.Records, blocks...)
}
