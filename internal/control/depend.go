package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/sched"
)

// A job may wait for others. What it waits for is kept with it as conditions
// on jobs of the table, and is looked at when one of these begins or ends, so
// that a round costs nothing by it. Only jobs that are there can be named, so
// no two can wait for each other.

// Waits is what a job waits for before the scheduler may look at it.
type Waits struct {
	Needs []Need     `json:"needs,omitempty"` // that have not come true
	Any   bool       `json:"any,omitempty"`   // one is enough
	Met   bool       `json:"met,omitempty"`   // enough of them have come true
	Since sched.Time `json:"since,omitempty"` // with Met: it may start from then on
}

// Need is a condition on one job.
type Need struct {
	Type  string     `json:"type"` // one of job.DependencyTypes
	Job   job.Number `json:"job"`  // of a singleton: one of those that are left
	Delay sched.Time `json:"delay,omitempty"`
}

// Past asks the sender of a Submit for jobs that have left the table: the same
// event is to be sent again with them in Submit.Past, nil for those that there
// never were.
type Past struct{ IDs []string }

// maxNeeds bounds the jobs that one job waits for.
const maxNeeds = 10_000

// dueNever stands for a time that is not known yet.
const dueNever = sched.Never / 4

// open says that the job waits for others still.
func (w *Waits) open() bool { return w != nil && !w.Met }

// since is the earliest start of a job by what it waits for; 0: at once.
func (w *Waits) since() sched.Time {
	switch {
	case w == nil:
		return 0
	case !w.Met:
		return dueNever
	}
	return w.Since
}

// watched are the jobs whose beginning or end may change something for j.
func (j *Job) watched() []job.Number {
	if j.Waits == nil || !j.State.Pending() || j.Tries > 0 {
		return nil
	}
	var out []job.Number
	for _, n := range j.Waits.Needs {
		out = append(out, n.Job)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fate is what became of a condition.
type fate int

const (
	unsettled fate = iota
	met            // from a moment on
	never
)

// judge looks at a condition on a job as it is. The moment is when the condition
// came true, or will.
func (n *Need) judge(now sched.Time, j *Job) (fate, sched.Time) {
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

// words is the condition in words.
func (n Need) words() string {
	switch n.Type {
	case job.After:
		if n.Delay > 0 {
			return fmt.Sprintf("job %d to have begun %s ago", n.Job, job.Duration(n.Delay/1000))
		}
		return fmt.Sprintf("job %d to begin", n.Job)
	case job.AfterOK, job.AfterCorr:
		return fmt.Sprintf("job %d to finish well", n.Job)
	case job.AfterNotOK:
		return fmt.Sprintf("job %d to fail", n.Job)
	case job.Singleton:
		return fmt.Sprintf("job %d, an earlier one of the same name and user, to end", n.Job)
	}
	return fmt.Sprintf("job %d to end", n.Job)
}

// missed says that a condition can no longer come true.
func (n Need) missed(j *Job) string {
	return fmt.Sprintf("waits for %s, which cannot happen any more: job %d is %s", n.words(), j.Number, j.State)
}

// Text says what a job waits for.
func (w *Waits) Text() string {
	const most = 5
	var words []string
	for _, n := range w.Needs[:min(len(w.Needs), most)] {
		words = append(words, n.words())
	}
	if more := len(w.Needs) - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more jobs", more))
	}
	if w.Any && len(w.Needs) > 1 {
		return "waits for one of: " + strings.Join(words, ", ")
	}
	return "waits for " + strings.Join(words, ", ")
}

// String is Slurm's form, as "afterok:12,afterany:13".
func (w *Waits) String() string {
	var b strings.Builder
	for i, n := range w.Needs {
		if i > 0 {
			b.WriteString(map[bool]string{false: ",", true: "?"}[w.Any])
		}
		b.WriteString(n.Type)
		if n.Type != job.Singleton {
			fmt.Fprintf(&b, ":%d", n.Job)
		}
		if n.Delay > 0 {
			fmt.Fprintf(&b, "+%d", n.Delay/sched.Minute)
		}
	}
	return b.String()
}

// settle takes in that a condition's job is as j now is. It reports whether
// something changed; why is set when the whole can no longer come true.
func (w Waits) settle(now sched.Time, j *Job, next func(Need) job.Number) (out Waits, changed bool, why string) {
	out = w
	out.Needs = nil
	for _, n := range w.Needs {
		if n.Job != j.Number {
			out.Needs = append(out.Needs, n)
			continue
		}
		if to := next(n); to != 0 {
			n.Job, changed = to, true
			out.Needs = append(out.Needs, n)
			continue
		}
		switch f, at := n.judge(now, j); f {
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
			changed, why = true, n.missed(j)
		}
	}
	if out.Any && (out.Met || len(out.Needs) > 0) {
		why = "" // another one is enough
	}
	out.Met = out.Met || why == "" && len(out.Needs) == 0
	return out, changed, why
}

// dependents is, for each job that others wait for, those others.
type dependents map[job.Number]map[job.Number]bool

func (d dependents) add(j *Job) {
	for _, n := range j.watched() {
		if d[n] == nil {
			d[n] = map[job.Number]bool{}
		}
		d[n][j.Number] = true
	}
}

func (d dependents) drop(j *Job) {
	for _, n := range j.watched() {
		if delete(d[n], j.Number); len(d[n]) == 0 {
			delete(d, n)
		}
	}
}

// news is that a job began or ended.
type news struct {
	of   job.Number
	told job.Number // its dependents up to this one have heard of it
}

// tell puts a job that began or ended before those that wait for it.
func (c *Controller) tell(j *Job) {
	if len(c.dependents[j.Number]) > 0 {
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
		for _, n := range slices.Sorted(maps.Keys(c.dependents[news.of])) {
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

func (c *Controller) settleOne(now sched.Time, j, awaited *Job) {
	waits, changed, why := j.Waits.settle(now, awaited, func(n Need) job.Number { return c.successorOf(j, n, awaited) })
	if !changed {
		return
	}
	line := ""
	if waits.Met && !j.Waits.Met {
		line = fmt.Sprintf("job %d is %s: need not wait for others any more", awaited.Number, awaited.State)
	}
	c.dependents.drop(j)
	if why != "" {
		j = c.change(now, j, "", func(j *Job) { j.Waits = &Waits{Any: waits.Any} })
		c.fail(now, j, job.DependencyFailed, why)
		return
	}
	j = c.change(now, j, line, func(j *Job) { j.Waits = &waits })
	c.dependents.add(j)
	if j.State == job.Queued {
		c.requeueEligible(now, j)
	}
}

// successorOf is the job that a condition is about from now on: of a singleton
// the next of the earlier ones that are left; 0: none takes its place.
func (c *Controller) successorOf(j *Job, n Need, awaited *Job) job.Number {
	if awaited.State == job.Halted && n.Type != job.After {
		return awaited.Next
	}
	if n.Type == job.Singleton && awaited.State.Final() {
		return c.earlier(j.Name, j.Owner.User, j.Number)
	}
	return 0
}

// requeueEligible tells the scheduler anew when a queued job may start.
func (c *Controller) requeueEligible(now sched.Time, j *Job) {
	if j.Tasks != nil {
		c.touch(j.Number)
		return
	}
	again := *j
	c.enqueue(now, &again)
	c.jobs.put(again.Number, &again)
	c.dirty = true
}

// resolve finds the jobs that a new job shall wait for. It answers with a Past
// if some have left the table and the event does not bring them, or with a
// *Refusal; why is set when what it waits for can no longer happen.
func (c *Controller) resolve(now sched.Time, e Submit) (w *Waits, why string, answer any) {
	g := e.Spec.Gbatch
	if g == nil || len(g.Dependencies) == 0 {
		return nil, "", nil
	}
	w = &Waits{Any: g.DependOnAny}
	var past Past
	var missed []string
	for i, d := range g.Dependencies {
		if d.Type == job.Singleton {
			if n := c.earlier(e.Spec.Name, e.User, c.next); n != 0 {
				w.Needs = append(w.Needs, Need{Type: d.Type, Job: n})
			} else if w.Any {
				w.Met = true
			}
			continue
		}
		for k, id := range d.Jobs {
			path := fmt.Sprintf("gbatch.dependencies[%d].jobs[%d]", i, k)
			j, refusal := c.awaited(id, e.Past, &past)
			if refusal != nil {
				refusal.Path = path
				return nil, "", refusal
			}
			if j == nil {
				continue
			}
			if d.Type == job.AfterCorr && (g.Tasks != nil || j.Tasks != nil) {
				return nil, "", &Refusal{Code: Unsatisfiable, Path: path, Message: fmt.Sprintf("tasks cannot wait one by one for those of job %s", id),
					Hint: "use afterok, which waits for all of them"}
			}
			n := Need{Type: d.Type, Job: j.Number, Delay: sched.Time(d.Delay) * 1000}
			switch f, at := n.judge(now, j); f {
			case unsettled:
				w.Needs = append(w.Needs, n)
			case met:
				if w.Since = max(w.Since, at); w.Any {
					w.Met, w.Since = true, at
				}
			case never:
				missed = append(missed, n.missed(j))
			}
		}
	}
	switch {
	case len(past.IDs) > 0:
		return nil, "", past
	case len(w.Needs) > maxNeeds:
		return nil, "", &Refusal{Code: Unsatisfiable, Path: "gbatch.dependencies", Message: fmt.Sprintf("names %d jobs, at most %d are allowed", len(w.Needs), maxNeeds)}
	case !w.Any && len(missed) > 0 || w.Any && !w.Met && len(w.Needs) == 0 && len(missed) > 0:
		return &Waits{Any: w.Any}, missed[0], nil
	}
	w.Met = w.Met || len(w.Needs) == 0
	if w.Met && w.Any && w.Since <= now {
		w.Needs = nil
	}
	return w, "", nil
}

// awaited finds a job that another names, in the table or among those of the
// past that the event brings. Those that it should bring are added to past.
func (c *Controller) awaited(id string, known map[string]*Job, past *Past) (*Job, *Refusal) {
	v := View{jobs: c.jobs}
	j, refusal := v.Find(id)
	if refusal != nil && refusal.Code != NotFound {
		return nil, refusal
	}
	if j == nil {
		var brought bool
		if j, brought = known[id]; !brought {
			past.IDs = append(past.IDs, id)
			return nil, nil
		}
	}
	if j != nil && j.State == job.Halted {
		return c.awaited(fmt.Sprint(j.Next), known, past) // who continues it counts
	}
	if j != nil && j.Number == 0 {
		return nil, &Refusal{Code: Conflict, Message: fmt.Sprintf("task %s is not in the queue yet, so that no job can wait for it", id),
			Hint: fmt.Sprintf("wait for all of its array: %d", j.Parent)}
	}
	if j == nil {
		return nil, &Refusal{Code: NotFound, Message: fmt.Sprintf("there is no job %s to wait for", id),
			Hint: "gqueue --all lists jobs with their numbers; a job must be submitted before others can wait for it"}
	}
	return j, nil
}

// loadWaits rebuilds who waits for whom, and looks again at jobs that had begun
// or ended when the controller stopped.
func (c *Controller) loadWaits() {
	for j := range c.jobs.all() {
		c.dependents.add(j)
	}
	for _, n := range slices.Sorted(maps.Keys(c.dependents)) {
		if j := c.job(n); j != nil && (j.State.Final() || j.Started > 0) {
			c.unsettled = append(c.unsettled, news{of: n})
		}
	}
}

// checkWaits verifies that the index is right and that nobody waits for a job
// that is gone.
func (c *Controller) checkWaits() error {
	want := dependents{}
	for j := range c.jobs.all() {
		want.add(j)
		for _, n := range j.watched() {
			switch a := c.job(n); {
			case a == nil:
				return fmt.Errorf("job %d waits for job %d, which is not in the table", j.Number, n)
			case a.State.Final() && !slices.ContainsFunc(c.unsettled, func(x news) bool { return x.of == n }):
				return fmt.Errorf("job %d waits for job %d, which is %s", j.Number, n, a.State)
			}
		}
		if j.Waits.open() && (j.State.Active() || j.State == job.Finished) {
			return fmt.Errorf("job %d is %s and waits for others", j.Number, j.State)
		}
	}
	if len(want) != len(c.dependents) {
		return fmt.Errorf("jobs wait for %d others, the index has %d", len(want), len(c.dependents))
	}
	for _, n := range slices.SortedFunc(maps.Keys(want), cmp.Compare) {
		if !maps.Equal(want[n], c.dependents[n]) {
			return fmt.Errorf("the index of those who wait for job %d is wrong", n)
		}
	}
	return nil
}
