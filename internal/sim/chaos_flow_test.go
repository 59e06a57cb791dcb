package sim

import (
	"fmt"

	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Jobs of a random history wait for others, are halted and queued again. The
// history keeps what each waits for and looks itself, when a job starts,
// whether that has come true.

// after draws what a job waits for.
func (x *chaos) after(ev *control.Submit) {
	ev.Spec.Name = fmt.Sprint("name", x.rng.IntN(4))
	if x.tally.Submitted == 0 || !x.oneIn(3) {
		return
	}
	g := ev.Spec.Gbatch
	for range 1 + x.rng.IntN(3) {
		d := job.Dependency{Type: []string{job.After, job.AfterOK, job.AfterNotOK, job.AfterAny, job.Singleton}[x.rng.IntN(5)]}
		if d.Type != job.Singleton {
			d.Jobs = []string{fmt.Sprint(1 + x.rng.IntN(x.tally.Submitted))}
			if len(x.arrays) > 0 && d.Type != job.After && x.oneIn(3) {
				d.Jobs[0] = fmt.Sprintf("%d_%d", x.arrays[x.rng.IntN(len(x.arrays))], 1+x.rng.IntN(12))
			}
		}
		if d.Type == job.After && x.oneIn(2) {
			d.Delay = job.Duration(1 + x.rng.IntN(600))
		}
		g.Dependencies = append(g.Dependencies, d)
	}
	g.DependOnAny = x.oneIn(2)
}

// send submits a job, with what the controller asks of the past.
func (x *chaos) send(ev control.Submit) {
	a, refusal := apply(x, ev)
	if len(a.Past) > 0 {
		ev.Past = map[string]*state.Job{}
		for _, id := range a.Past {
			ev.Past[id] = x.find(id)
		}
		a, refusal = apply(x, ev)
	}
	if refusal == nil {
		x.asked[a.Number] = ev.Spec.Gbatch
		if ev.Spec.Gbatch.Tasks != nil {
			x.arrays = append(x.arrays, a.Number)
		}
	}
}

// known is a job of the table or of history.
func (x *chaos) known(n job.Number) *state.Job {
	if j := x.c.View(x.now).Job(n); j != nil {
		return j
	}
	r, ok := x.stored[fmt.Sprintf("%c/%d/0/", state.KindHistory, n)]
	if !ok {
		return nil
	}
	j, err := state.DecodeJob(r.Value)
	x.fail(err)
	return j
}

// mayStart fails the history if a job starts before what it waits for. A task
// waits for what its array does.
func (x *chaos) mayStart(j *state.Job) {
	who := j
	if j.Parent > 0 {
		who = x.known(j.Parent)
	}
	g := x.asked[who.Number]
	if g == nil || len(g.Dependencies) == 0 && !g.Replace {
		return
	}
	met := 0
	for _, d := range g.Dependencies {
		switch {
		case d.Type == job.AfterCorr && x.taskState(d.Jobs[0], j.Index) == state.TaskSucceeded:
			x.tally.Corr++
			met++
		case d.Type != job.AfterCorr && x.cameTrue(who, d):
			met++
		}
	}
	switch {
	case g.Replace && !x.cameTrue(who, job.Dependency{Type: job.Singleton}):
		x.fail(fmt.Errorf("job %d starts before those that it replaces are over", j.Number))
	case len(g.Dependencies) > 0 && (met == 0 || !g.DependOnAny && met < len(g.Dependencies)):
		x.fail(fmt.Errorf("job %s starts: %d of %+v have come true (any: %t)", j.ID(), met, g.Dependencies, g.DependOnAny))
	}
	x.tally.Awaited++
}

// halted counts the jobs that continue others.
func (x *chaos) halted() (n int) {
	for j := range x.c.View(x.now).All() {
		if j.Restart != nil {
			n++
		}
	}
	return n
}

func (x *chaos) cameTrue(j *state.Job, d job.Dependency) bool {
	if d.Type == job.Singleton {
		for o := range x.c.View(x.now).All() {
			if o.Number < j.Number && o.Parent == 0 && o.Cron == nil && o.Name == j.Name && o.Owner.User == j.Owner.User && !o.State.Final() {
				return false
			}
		}
		return true
	}
	if p, set, ok := state.ParseTask(d.Jobs[0]); ok {
		return taskCameTrue(x.taskState(fmt.Sprint(p), set[0].First), d.Type)
	}
	n, _ := job.ParseNumber(d.Jobs[0])
	a := x.known(n)
	begun := a.Tries > 0 || a.First > 0 || a.Restart != nil // of one that continues another, the work has begun
	for a.State == job.Halted && a.Next != 0 {
		a = x.known(a.Next)
	}
	switch d.Type {
	case job.After:
		return (begun || a.State.Final()) && (a.Started == 0 || a.Tries > 1 || a.Restart != nil || x.now >= a.Started+sched.Time(d.Delay)*sched.Second)
	case job.AfterOK:
		return a.State == job.Finished
	case job.AfterNotOK:
		return a.State == job.Failed || a.State == job.Cancelled
	}
	return a.State.Final()
}
