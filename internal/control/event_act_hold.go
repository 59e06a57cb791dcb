package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// What an operator holds of others is let go by operators alone, and has the reason
// ByAdmin. All else that is on hold is let go by its user too: what users hold, what
// the site's prolog failed for, and what may have run since a backup.

// hold keeps what waits from starting. An operator takes over what somebody else or
// nobody holds, or with UHold hands it back to its user.
func (e Act) hold(s *step, j *state.Job) Result {
	switch {
	case j.State == job.OnHold && e.handsOver(j):
	case j.State == job.OnHold:
		return Result{Message: "is on hold already"}
	case j.State == job.Assigned && !j.Holds() && j.Ending == nil:
		e.holdGiven(s, j)
		return Result{Message: "is being taken back from its node, and held"}
	case j.State != job.Queued:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a queued job can be held", j.Number, j.State)}}
	case j.Tasks != nil && !s.arrays.waits(j):
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("all tasks of job %d have begun: only what waits can be held", j.Number)}}
	}
	reason, text := e.holder(j), "held by "+e.By
	for _, c := range s.arrays.withTasks(j) {
		if c.State == job.Queued || c.State == job.OnHold && e.handsOver(c) {
			s.jobs.change(c, text, func(c *state.Job) { c.State, c.Reason, c.Text = job.OnHold, reason, text })
		} else if c.State == job.Assigned && !c.Holds() && c.Ending == nil {
			e.holdGiven(s, c)
		}
	}
	return Result{Message: "held"}
}

// holdGiven holds a task that was given to its node ahead, unless it has begun there.
func (e Act) holdGiven(s *step, j *state.Job) {
	s.attempts.stop(j, state.Ending{Signal: "KILL", Ahead: true, Then: job.OnHold, Reason: e.holder(j), Text: "held by " + e.By})
}

// holder is who lets go what this order holds.
func (e Act) holder(j *state.Job) job.Reason {
	if e.Action != UHold && e.Operator && e.By != j.Owner.User {
		return job.ByAdmin
	}
	return job.ByUser
}

// handsOver says whether this order changes who lets a job go that is on hold.
func (e Act) handsOver(j *state.Job) bool {
	if e.Action == UHold {
		return e.Operator && j.Reason == job.ByAdmin
	}
	return e.holder(j) == job.ByAdmin && j.Reason != job.ByAdmin
}

func (e Act) release(s *step, j *state.Job) Result {
	switch {
	case j.State == job.Queued:
		return Result{Message: "is not on hold"}
	case j.State != job.OnHold:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a held job can be released", j.Number, j.State)}}
	case !e.mayRelease(j):
		return Result{Refusal: &state.Refusal{Code: state.Denied, Message: fmt.Sprintf("job %s is %s: what an operator holds is released by operators alone", j.ID(), j.Text),
			Hint: "ask there, or another operator; until then it can be cancelled"}}
	}
	for _, c := range s.arrays.withTasks(j) {
		if c.State == job.OnHold && e.mayRelease(c) {
			s.jobs.change(c, "released by "+e.By, func(c *state.Job) { c.State, c.Reason, c.Text = job.Queued, job.None, "" })
		}
	}
	return Result{Message: "released"}
}

func (e Act) mayRelease(j *state.Job) bool { return e.Operator || j.Reason != job.ByAdmin }

// withTasks is a job that is about to change, and of an array with its tasks that are
// jobs.
func (as *arrays) withTasks(j *state.Job) []*state.Job {
	as.Touch(j.Number)
	return append([]*state.Job{j}, as.children(j.Number)...)
}
