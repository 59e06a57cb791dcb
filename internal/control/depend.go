package control

import (
	"fmt"

	"gbatch/internal/control/depend"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// maxNotified is how many dependents one step looks at; a Tick goes on at once.
const maxNotified = 1000

// depends is what becomes of jobs that wait for others, by what depend.Set keeps
// of them.
type depends struct {
	*depend.Set
	jobs   *jobs
	arrays *arrays
}

// follow lets all follow that follows from a step: arrays whose tasks changed,
// and jobs that waited for those that began or ended.
func (d *depends) follow() {
	d.arrays.update()
	for d.notify(); d.arrays.Pending(); d.notify() {
		d.arrays.update()
	}
}

func (d *depends) notify() {
	if !d.Pending() {
		return
	}
	d.Notified(maxNotified, func(waiting, awaited job.Number) { d.updateWaits(d.jobs.get(waiting), d.jobs.get(awaited)) })
}

// updateWaits takes in that a job for which another waits began or ended.
func (d *depends) updateWaits(j, awaited *state.Job) {
	waits, changed, why := depend.Update(*j.Waits, d.jobs.out.Now, awaited, func(n state.Need) job.Number { return d.successorOf(j, n, awaited) })
	if !changed {
		return
	}
	line := ""
	if waits.Met && !j.Waits.Met {
		line = fmt.Sprintf("job %d is %s: need not wait for others any more", awaited.Number, awaited.State)
	}
	d.Drop(j)
	if why != "" {
		j = d.jobs.change(j, "", func(j *state.Job) { j.Waits = &state.Waits{Any: waits.Any, Tasks: waits.Tasks} })
		d.miss(j, why)
		return
	}
	j = d.jobs.change(j, line, func(j *state.Job) { j.Waits = &waits })
	d.Add(j)
	if j.State == job.Queued {
		d.eligible(j)
	}
}

// miss ends a job for which what it waits for cannot come true any more. Nothing
// of it has failed: it just does not happen.
func (d *depends) miss(j *state.Job, why string) *state.Job {
	d.arrays.stop(j, state.Ending{Then: job.Cancelled, Reason: job.DependencyFailed, Text: why})
	if j.Tasks != nil {
		d.arrays.update()
	}
	return d.jobs.get(j.Number)
}

// successorOf is the job that a condition is about from now on: of a singleton
// the next of the earlier ones that are left, of a task its job as soon as it
// has one; 0: none takes its place.
func (d *depends) successorOf(j *state.Job, n state.Need, awaited *state.Job) job.Number {
	if n.Task != nil {
		return d.jobs.byUUID[awaited.TaskUUID(*n.Task)]
	}
	if awaited.State == job.Halted && n.Type != job.After {
		return awaited.Next
	}
	if n.Type == job.Singleton && awaited.State.Final() {
		return d.Earlier(j.Name, j.Owner.User, j.Number, &d.jobs.table)
	}
	return 0
}

// eligible follows that it is another time at which a queued job may start.
func (d *depends) eligible(j *state.Job) {
	if j.Tasks != nil {
		d.arrays.Touch(j.Number)
		return
	}
	d.jobs.enqueueAgain(j)
}
