package control

import (
	"cmp"
	"fmt"

	"gbatch/internal/control/templates"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// A job that makes room for another is halted: RUNNING, MUSTHALT when that is
// ordered, HALTING when all of its nodes have sent the signal, and HALTED when
// it has ended. That is the end of this job; in the same step its successor is
// queued, a new job that asks the same and goes on from what was saved.

// halt orders a job's halt. One of which nothing has run yet has nothing to
// save: it just waits again.
func (a *attempts) halt(j *state.Job, reason job.Reason, text string) {
	how := state.Ending{
		Signal: cmp.Or(j.Request.HaltSignal, "TERM"), Grace: cmp.Or(j.Request.HaltGrace, a.cfg.Grace),
		Reason: reason, Text: text, Then: job.Halted,
	}
	if j.Request.HaltUnwarned {
		how.Signal, how.Grace = "KILL", 0
	}
	if j.State != job.Running || j.Parent > 0 { // a task goes on as the same task
		how.Then = job.Queued
	}
	a.takeBack(j, text) // what it makes room for is not them
	a.stop(j, how)
}

// haltByOrder is a user's or operator's order to halt a job.
func (e Act) haltByOrder(s *step, j *state.Job) Result {
	switch {
	case j.State == job.MustHalt || j.State == job.Halting:
		return Result{Message: "is being halted already"}
	case j.State != job.Running || j.Ending != nil:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a job that runs can be halted", j.Number, j.Words()),
			Hint: "a job that is starting can be queued again: gcancel --requeue"}}
	case !j.Request.Restartable:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is not restartable: what it has done would be lost", j.Number),
			Hint: "jobs that save their work say so with request.scheduling.restartable; gcancel --requeue begins this one anew"}}
	}
	if r := e.waitAgain(s, j); r != nil {
		return Result{Refusal: r}
	}
	s.attempts.halt(j, e.reason(j), "halted by "+e.By)
	if j.Parent > 0 {
		return Result{Message: "is being halted; it will wait again, as the same task"}
	}
	return Result{Message: "is being halted; a new job will continue it"}
}

// haltSent takes in that a rank was sent its halt signal.
func (a *attempts) haltSent(j *state.Job) {
	for _, r := range j.Attempt.Ranks {
		if r.Phase != node.PhaseEnded && !r.Stopping {
			return
		}
	}
	a.jobs.change(j, fmt.Sprintf("sent %s, has %s to save its work", j.Ending.Signal, job.Duration(j.Ending.Grace/1000)), func(j *state.Job) { j.State = job.Halting })
}

// succeed queues the job that continues one that was halted, in its place: it
// counts as old as that one, and what that one ran counts against its limit.
func (a *attempts) succeed(j *state.Job) {
	r := state.Restart{Of: j.Number, Initial: j.UUID, Tries: j.Tries, Image: j.Last().Image}
	if j.Restart != nil {
		r.Initial = j.Restart.Initial
		r.Count, r.Tries = j.Restart.Count, j.Restart.Tries+j.Tries
	}
	r.Count++
	s := &state.Job{
		Number: j.Next, UUID: state.UUID(r.Initial).Derive(fmt.Sprint("restart ", r.Count)), Name: j.Name, Owner: j.Owner, Request: j.Request,
		State: job.Queued, Submitted: j.Submitted, Since: a.out.Now, Version: 1, UsedRun: j.UsedRun, Warned: j.Warned, Expected: j.Expected,
		Sealed: j.Sealed, Secrets: j.Secrets, Doc: j.Document(), Restart: &r, Template: j.Template,
		DocBytes: j.DocBytes, SealedBytes: j.SealedBytes,
	}
	if t := templates.Maker(j, &a.jobs.table); t != nil {
		cron := *t.Cron
		cron.Last = s.Number
		a.jobs.change(t, "", func(t *state.Job) { t.Cron = &cron })
	}
	a.jobs.add(s, fmt.Sprintf("continues job %d, which was halted after %s", j.Number, job.Duration(max(j.UsedRun/1000, 1))))
}
