package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// change puts a changed copy of a job into the table, records it, and writes
// the line of its timeline if there is one.
func (c *step) change(old *state.Job, line string, edit func(*state.Job)) *state.Job {
	j := *old
	edit(&j)
	j.Version++
	if j.State != old.State {
		if !canMove(old, j.State) {
			panic(fmt.Sprintf("job %d: %v", j.Number, &job.MoveError{From: old.State, To: j.State}))
		}
		j.Since = c.now
		c.moved(old, &j)
		c.out.mail(&j, old.State)
	}
	c.jobs.put(old, &j)
	if j.Parent > 0 {
		c.arrays.TaskChanged(old, &j)
	}
	c.out.job(c.now, &j, old.State, line)
	return &j
}

// show changes what is only shown of a job. It is not recorded, as its node says
// it again.
func (c *step) show(old *state.Job, edit func(*state.Job)) {
	j := *old
	edit(&j)
	j.Version++
	c.jobs.put(old, &j)
	c.out.Changed = append(c.out.Changed, j.Number)
}

func canMove(j *state.Job, to job.State) bool {
	if j.Tasks != nil {
		return job.CanMoveParent(j.State, to)
	}
	return job.CanMove(j.State, to)
}

// moved keeps the counts and indexes right when a job changes state.
func (c *step) moved(old, j *state.Job) {
	c.queue.due = true
	if !j.State.Pending() {
		c.depends.Drop(old)
	}
	if j.State.Final() || j.State == job.Running {
		c.depends.Notify(j.Number)
	}
	switch {
	case j.Tasks != nil:
	case j.State == job.Queued:
		c.enqueue(j)
	case old.State == job.Queued && !j.State.Active():
		delete(c.queue.promised, j.Number)
		c.queue.sched.Dequeue(schedID(j.Number))
	}
	if old.State == job.Running {
		delete(c.idle, j.Number)
	}
	if j.Cron != nil {
		c.templates.next = c.now // looked up anew by the next Tick
	}
	if !old.State.Final() && j.State.Final() {
		j.Ended = c.now
		c.countEnd(j)
		c.observe(j)
		if j.Sealed && !c.keepsSealed(j) {
			j.Sealed = false
			c.out.record(state.Record{Kind: state.KindSecret, Job: j.Document()})
		}
	}
}

// insert puts a job that is new to the table into every index.
func (c *step) insert(j *state.Job) {
	c.jobs.put(nil, j)
	c.depends.Add(j)
	c.depends.AddName(j, &c.jobs.table)
	if j.Cron != nil {
		c.templates.add(j.Number)
		c.templates.findNext(&c.jobs)
	}
	switch {
	case j.Tasks != nil:
		c.arrays.Add(j, &c.jobs.table)
		c.arrays.Touch(j.Number)
	case j.State == job.Queued:
		c.enqueue(j)
	}
}

// add takes a new job in.
func (c *step) add(j *state.Job, line string) {
	c.insert(j)
	c.notifyReplaced(j)
	c.out.job(c.now, j, "", line)
	c.recordArray(j)
	c.out.mail(j, "")
	c.queue.due = true
}
