package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Action is a user's or operator's order about jobs.
type Action string

// The actions.
const (
	Cancel  Action = "cancel"
	Hold    Action = "hold"
	Release Action = "release"
	Pause   Action = "pause"
	Resume  Action = "resume"
	Requeue Action = "requeue"
	Halt    Action = "halt"
	Signal  Action = "signal"
	Update  Action = "update"
)

// Act asks for an action on jobs. The caller has checked that By may do it. The
// answer is []Outcome, one for each number, in order.
type Act struct {
	Action  Action
	Numbers []job.Number
	By      string
	Admin   bool // By is not the owner but an operator

	Operator bool   // By is an operator, whoever owns the jobs
	Signal   string // with Signal: its name, as USR1
	Priority int    // with Update
}

// Outcome is what an action did to one job. Refusal is nil when it was done
// or nothing needed doing.
type Outcome struct {
	Before, After job.State
	Message       string
	Refusal       *state.Refusal
}

func (e Act) apply(c *Controller, now sched.Time) any {
	out := make([]Outcome, len(e.Numbers))
	for i, n := range e.Numbers {
		j := c.job(n)
		if j == nil {
			out[i].Refusal = state.NoSuchJob(fmt.Sprint(n))
			continue
		}
		out[i] = c.act(now, j, e)
		out[i].Before = j.Status()
		out[i].After = c.job(n).Status()
	}
	return out
}

func (c *Controller) act(now sched.Time, j *state.Job, e Act) Outcome {
	switch e.Action {
	case Cancel:
		return c.cancel(now, j, e)
	case Hold:
		return c.hold(now, j, e)
	case Release:
		return c.release(now, j, e)
	case Update:
		return c.reprioritize(now, j, e)
	}
	if j.Tasks != nil && !j.State.Final() {
		return c.actActive(now, j, e)
	}
	switch e.Action {
	case Pause:
		return c.pause(now, j, e)
	case Resume:
		return c.resume(now, j, e)
	case Requeue:
		return c.requeue(now, j, e)
	case Halt:
		return c.haltByOrder(now, j, e)
	}
	return c.signal(now, j, e)
}

func (c *Controller) cancel(now sched.Time, j *state.Job, e Act) Outcome {
	reason := e.reason()
	text := "cancelled by " + e.By
	switch {
	case j.State.Final():
		return Outcome{Message: "already " + string(j.State)}
	case j.Tasks != nil:
		return c.cancelArray(now, j, reason, text)
	case j.State.Pending():
		c.change(now, j, text, func(j *state.Job) { j.State, j.Reason, j.Text = job.Cancelled, reason, text })
		return Outcome{Message: "cancelled"}
	case j.Ending != nil && j.Ending.Then == job.Cancelled:
		return Outcome{Message: "is being cancelled already"}
	}
	how := c.stopWith(j)
	how.Reason, how.Text, how.Then = reason, text, job.Cancelled
	c.end(now, j, how)
	return Outcome{Message: "is being cancelled"}
}

// end orders the end of a running attempt; its nodes will report it.
func (c *Controller) end(now sched.Time, j *state.Job, how state.Ending) {
	c.change(now, j, how.Text, func(j *state.Job) { j.Ending = &how })
	c.sched.Halting(schedID(j.Number)) // what it holds is expected back soon
	c.wakeNodesOf(j)
}

func (c *Controller) hold(now sched.Time, j *state.Job, e Act) Outcome {
	switch {
	case j.State == job.OnHold:
		return Outcome{Message: "is on hold already"}
	case j.State != job.Queued:
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a queued job can be held", j.Number, j.State)}}
	}
	c.change(now, j, "held by "+e.By, func(j *state.Job) { j.State = job.OnHold })
	c.holdChildren(now, j, job.Queued, job.OnHold, "held by "+e.By)
	return Outcome{Message: "held"}
}

func (c *Controller) release(now sched.Time, j *state.Job, e Act) Outcome {
	switch {
	case j.State == job.Queued:
		return Outcome{Message: "is not on hold"}
	case j.State != job.OnHold:
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a held job can be released", j.Number, j.State)}}
	}
	c.change(now, j, "released by "+e.By, func(j *state.Job) { j.State = job.Queued })
	c.holdChildren(now, j, job.OnHold, job.Queued, "released by "+e.By)
	return Outcome{Message: "released"}
}

// pause makes a running job's processes stand still. It keeps its resources,
// and its time limit goes on.
func (c *Controller) pause(now sched.Time, j *state.Job, e Act) Outcome {
	switch {
	case j.State != job.Running || j.Ending != nil:
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a job that runs can be paused", j.Number, stateText(j))}}
	case j.Attempt.Paused != "":
		return Outcome{Message: "is paused already"}
	}
	c.setPaused(now, j, e.By, "paused by "+e.By)
	return Outcome{Message: "paused; it keeps its resources and its time limit goes on"}
}

func (c *Controller) resume(now sched.Time, j *state.Job, e Act) Outcome {
	switch {
	case !j.State.Active() || j.Ending != nil:
		return Outcome{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a paused job can be resumed", j.Number, stateText(j))}}
	case j.Attempt.Paused == "":
		return Outcome{Message: "is not paused"}
	}
	c.setPaused(now, j, "", "resumed by "+e.By)
	return Outcome{Message: "resumed"}
}

func (c *Controller) setPaused(now sched.Time, j *state.Job, by, line string) {
	at := *j.Attempt
	at.Paused = by
	c.wakeNodesOf(c.change(now, j, line, func(j *state.Job) { j.Attempt = &at }))
}

func stateText(j *state.Job) string {
	if j.Ending != nil {
		return "being ended"
	}
	return string(j.State)
}
