package control

import (
	"fmt"

	"gbatch/internal/control/depend"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// maxNotified is how many dependents one step looks at; a Tick goes on at once.
const maxNotified = 1000

// follow lets all follow that follows from a step: arrays whose tasks changed,
// and jobs that waited for those that began or ended.
func (c *step) follow() {
	c.updateArrays()
	for c.notify(); c.arrays.Pending(); c.notify() {
		c.updateArrays()
	}
}

func (c *step) notify() {
	c.depends.Notified(maxNotified, func(waiting, awaited job.Number) { c.updateWaits(c.job(waiting), c.job(awaited)) })
}

// updateWaits takes in that a job for which another waits began or ended.
func (c *step) updateWaits(j, awaited *state.Job) {
	waits, changed, why := depend.Update(*j.Waits, c.now, awaited, func(n state.Need) job.Number { return c.successorOf(j, n, awaited) })
	if !changed {
		return
	}
	line := ""
	if waits.Met && !j.Waits.Met {
		line = fmt.Sprintf("job %d is %s: need not wait for others any more", awaited.Number, awaited.State)
	}
	c.depends.Drop(j)
	if why != "" {
		j = c.change(j, "", func(j *state.Job) { j.Waits = &state.Waits{Any: waits.Any, Tasks: waits.Tasks} })
		c.fail(j, job.DependencyFailed, why)
		return
	}
	j = c.change(j, line, func(j *state.Job) { j.Waits = &waits })
	c.depends.Add(j)
	if j.State == job.Queued {
		c.eligible(j)
	}
}

// successorOf is the job that a condition is about from now on: of a singleton
// the next of the earlier ones that are left, of a task its job as soon as it
// has one; 0: none takes its place.
func (c *Controller) successorOf(j *state.Job, n state.Need, awaited *state.Job) job.Number {
	if n.Task != nil {
		return c.jobs.byUUID[awaited.TaskUUID(*n.Task)]
	}
	if awaited.State == job.Halted && n.Type != job.After {
		return awaited.Next
	}
	if n.Type == job.Singleton && awaited.State.Final() {
		return c.depends.Earlier(j.Name, j.Owner.User, j.Number, &c.jobs.table)
	}
	return 0
}

// eligible follows that it is another time at which a queued job may start.
func (c *step) eligible(j *state.Job) {
	if j.Tasks != nil {
		c.arrays.Touch(j.Number)
		return
	}
	c.enqueueAgain(j)
	c.queue.due = true
}
