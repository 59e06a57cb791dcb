package control

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// A job may wait for others. What it waits for is kept with it as conditions
// on jobs of the table, and is looked at when one of these begins or ends, so
// that a round costs nothing by it. Only jobs that are there can be named, so
// no two can wait for each other.

// Past asks the sender of a Submit for jobs that have left the table: the same
// event is to be sent again with them in Submit.Past, nil for those that there
// never were.
type Past struct{ IDs []string }

// maxNeeds bounds the jobs that one job waits for.
const maxNeeds = 10_000

// dueNever stands for a time that is not known yet.
const dueNever = sched.Never / 4

// watched are the conditions whose jobs may change something for j by their
// beginning or end.
func awaits(j *state.Job) []state.Need {
	if j.Waits == nil || !j.State.Pending() || j.Tries > 0 {
		return nil
	}
	return j.Waits.Needs
}

// fate is what became of a condition.
type fate int

const (
	unsettled fate = iota
	met            // from a moment on
	never
)

// judge looks at a condition on a job, or a task that is none, as it is. The moment is when the condition
// came true, or will.
func judge(n state.Need, now sched.Time, j *state.Job) (fate, sched.Time) {
	ended := j.State.Final()
	switch n.Type {
	case job.After:
		switch {
		case j.Started > 0:
			return met, j.Started + n.Delay
		case ended || j.UsedRun > 0:
			return met, now + n.Delay
		}
	case job.AfterOK, job.AfterCorr:
		if j.State == job.Finished {
			return met, now
		}
		if ended {
			return never, 0
		}
	case job.AfterNotOK:
		if j.State == job.Finished {
			return never, 0
		}
		if ended {
			return met, now
		}
	case job.AfterAny, job.Singleton:
		if ended {
			return met, now
		}
	}
	return unsettled, 0
}

// settle takes in that a condition's job is as j now is. It reports whether
// something changed; why is set when the whole can no longer come true.
func settle(w state.Waits, now sched.Time, j *state.Job, next func(state.Need) job.Number) (out state.Waits, changed bool, why string) {
	out = w
	out.Needs = nil
	for _, n := range w.Needs {
		if n.Job != j.Number {
			out.Needs = append(out.Needs, n)
			continue
		}
		if to := next(n); to != 0 {
			n.Job, n.Task, changed = to, nil, true
			out.Needs = append(out.Needs, n)
			continue
		}
		about := j
		if n.Task != nil {
			about, _ = j.PendingTask(*n.Task)
		}
		switch f, at := judge(n, now, about); f {
		case unsettled:
			out.Needs = append(out.Needs, n)
		case met:
			changed = true
			switch {
			case !out.Any:
				out.Since = max(out.Since, at)
			case !out.Met || at < out.Since:
				out.Since = at
			}
			out.Met = out.Met || out.Any
		case never:
			changed, why = true, n.Missed(about)
		}
	}
	if out.Any && (out.Met || len(out.Needs) > 0) {
		why = "" // another one is enough
	}
	out.Met = out.Met || why == "" && len(out.Needs) == 0
	return out, changed, why
}

// dependents is who waits for whom.
type dependents struct {
	on    map[job.Number]map[job.Number]bool // for each job that others wait for, those others
	tasks map[job.Number]map[int]int         // for each array, how many wait for which tasks that are no jobs yet
}

func newDependents() dependents {
	return dependents{on: map[job.Number]map[job.Number]bool{}, tasks: map[job.Number]map[int]int{}}
}

func (d dependents) add(j *state.Job) {
	for _, n := range awaits(j) {
		if d.on[n.Job] == nil {
			d.on[n.Job] = map[job.Number]bool{}
		}
		d.on[n.Job][j.Number] = true
		if n.Task == nil {
			continue
		}
		if d.tasks[n.Job] == nil {
			d.tasks[n.Job] = map[int]int{}
		}
		d.tasks[n.Job][*n.Task]++
	}
}

func (d dependents) drop(j *state.Job) {
	for _, n := range awaits(j) {
		if delete(d.on[n.Job], j.Number); len(d.on[n.Job]) == 0 {
			delete(d.on, n.Job)
		}
		if n.Task == nil {
			continue
		}
		tasks := d.tasks[n.Job]
		if tasks[*n.Task]--; tasks[*n.Task] == 0 {
			delete(tasks, *n.Task)
		}
		if len(tasks) == 0 {
			delete(d.tasks, n.Job)
		}
	}
}

// news is that a job began or ended.
type news struct {
	of   job.Number
	told job.Number // its dependents up to this one have heard of it
}

// tell puts a job that began or ended before those that wait for it.
func (c *Controller) tell(j *state.Job) {
	if len(c.dependents.on[j.Number]) > 0 {
		c.unsettled = append(c.unsettled, news{of: j.Number})
	}
}

// settleMost is how many dependents one step looks at; a Tick goes on at once.
const settleMost = 1000

// settle tells the dependents of jobs that began or ended. It goes on until
// nothing follows any more, or settleMost are done.
func (c *Controller) settle(now sched.Time) {
	for done := 0; len(c.unsettled) > 0; {
		news := &c.unsettled[0]
		for _, n := range slices.Sorted(maps.Keys(c.dependents.on[news.of])) {
			switch {
			case n <= news.told:
				continue
			case done == settleMost:
				return
			}
			done++
			news.told = n
			c.settleOne(now, c.job(n), c.job(news.of))
			news = &c.unsettled[0] // more may have been added
		}
		c.unsettled = c.unsettled[1:]
	}
}

func (c *Controller) settleOne(now sched.Time, j, awaited *state.Job) {
	waits, changed, why := settle(*j.Waits, now, awaited, func(n state.Need) job.Number { return c.successorOf(j, n, awaited) })
	if !changed {
		return
	}
	line := ""
	if waits.Met && !j.Waits.Met {
		line = fmt.Sprintf("job %d is %s: need not wait for others any more", awaited.Number, awaited.State)
	}
	c.dependents.drop(j)
	if why != "" {
		j = c.change(now, j, "", func(j *state.Job) { j.Waits = &state.Waits{Any: waits.Any, Tasks: waits.Tasks} })
		c.fail(now, j, job.DependencyFailed, why)
		return
	}
	j = c.change(now, j, line, func(j *state.Job) { j.Waits = &waits })
	c.dependents.add(j)
	if j.State == job.Queued {
		c.requeueEligible(now, j)
	}
}

// successorOf is the job that a condition is about from now on: of a singleton
// the next of the earlier ones that are left, of a task its job as soon as it
// has one; 0: none takes its place.
func (c *Controller) successorOf(j *state.Job, n state.Need, awaited *state.Job) job.Number {
	if n.Task != nil {
		return c.byUUID[awaited.TaskUUID(*n.Task)]
	}
	if awaited.State == job.Halted && n.Type != job.After {
		return awaited.Next
	}
	if n.Type == job.Singleton && awaited.State.Final() {
		return c.earlier(j.Name, j.Owner.User, j.Number)
	}
	return 0
}

// requeueEligible tells the scheduler anew when a queued job may start.
func (c *Controller) requeueEligible(now sched.Time, j *state.Job) {
	if j.Tasks != nil {
		c.touch(j.Number)
		return
	}
	again := *j
	c.enqueue(now, &again)
	c.jobs.Put(again.Number, &again)
	c.dirty = true
}

// loadWaits rebuilds who waits for whom, and looks again at jobs that had begun
// or ended when the controller stopped.
func (c *Controller) loadWaits() {
	for j := range c.jobs.All() {
		c.dependents.add(j)
	}
	for _, n := range slices.Sorted(maps.Keys(c.dependents.on)) {
		if j := c.job(n); j != nil && (j.State.Final() || j.Started > 0) {
			c.unsettled = append(c.unsettled, news{of: n})
		}
	}
}

// checkWaits verifies that the index is right and that nobody waits for a job
// that is gone.
func (c *Controller) checkWaits() error {
	want := newDependents()
	for j := range c.jobs.All() {
		want.add(j)
		for _, n := range awaits(j) {
			told := slices.ContainsFunc(c.unsettled, func(x news) bool { return x.of == n.Job })
			switch a := c.job(n.Job); {
			case a == nil:
				return fmt.Errorf("job %d waits for %s, which is not in the table", j.Number, n.Who())
			case a.State.Final() && !told:
				return fmt.Errorf("job %d waits for %s, and job %d is %s", j.Number, n.Who(), a.Number, a.State)
			case n.Task == nil || told:
			default:
				if s, ok := a.Tasks.State(*n.Task); !ok || s != state.TaskPending {
					return fmt.Errorf("job %d waits for %s, which is %q", j.Number, n.Who(), s)
				}
			}
		}
		if j.Waits.Open() && (j.State.Active() || j.State == job.Finished) {
			return fmt.Errorf("job %d is %s and waits for others", j.Number, j.State)
		}
	}
	if !reflect.DeepEqual(want, c.dependents) {
		return fmt.Errorf("the index of who waits for whom has %d jobs, want %d, or others", len(c.dependents.on), len(want.on))
	}
	return nil
}

// since is the earliest start of a job by what it waits for; 0: at once.
func since(w *state.Waits) sched.Time {
	switch {
	case w == nil:
		return 0
	case !w.Met:
		return dueNever
	}
	return w.Since
}
