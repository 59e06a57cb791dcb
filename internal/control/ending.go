package control

import (
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// end orders the end of a running attempt; its nodes will report it.
func (c *step) end(j *state.Job, how state.Ending) {
	c.change(j, how.Text, func(j *state.Job) { j.Ending = &how })
	c.queue.sched.Halting(schedID(j.Number)) // what it holds is expected back soon
	c.wakeNodesOf(j)
}

// fail ends a job that waits.
func (c *step) fail(j *state.Job, reason job.Reason, text string) *state.Job {
	if j.Tasks != nil {
		c.endArray(j, state.Ending{Then: job.Failed, Reason: reason, Text: text})
		c.updateArrays()
		return c.job(j.Number)
	}
	return c.change(j, text, func(j *state.Job) { j.State, j.Reason, j.Text = job.Failed, reason, text })
}

func endLine(s job.State, text string) string {
	if text == "" && s == job.Finished {
		return "finished"
	}
	return text
}

// stopWith is how a job is asked to end.
func (c *Controller) stopWith(j *state.Job) state.Ending {
	e := state.Ending{Signal: "TERM", Grace: c.cfg.Grace}
	if j.Request.StopSignal != "" {
		e.Signal = j.Request.StopSignal
	}
	if g := j.Request.StopGrace; g > 0 {
		e.Grace = g
	}
	return e
}
