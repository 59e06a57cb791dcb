package control

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/control/amend"
	"gbatch/internal/control/picture"
	"gbatch/internal/control/quota"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Action is a user's or operator's order about jobs.
type Action string

// The actions.
const (
	Cancel  Action = "cancel"
	Hold    Action = "hold"
	UHold   Action = "uhold" // by an operator, as if its user did it
	Release Action = "release"
	Pause   Action = "pause"
	Resume  Action = "resume"
	Requeue Action = "requeue"

	RequeueHold Action = "requeuehold" // as Requeue, and the job is on hold then

	Halt   Action = "halt"
	Signal Action = "signal"
	Update Action = "update"
)

// Act asks for an action on jobs. The caller has checked that By may do it. The
// answer has one result for each number, in order.
type Act struct {
	Action  Action
	Numbers []job.Number
	By      string

	Operator bool         // By is an operator, whoever owns the jobs
	Signal   string       // with Signal: its name, as USR1
	Change   amend.Change // with Update
	Move     Move         // with a Change that moves
}

// Result is what an action did to one job. Refusal is nil when it was done
// or nothing needed doing.
type Result struct {
	Before, After job.State
	Message       string
	Refusal       *state.Refusal
}

func (e Act) apply(s *step) ([]Result, *state.Refusal) {
	if r := e.store(s, len(e.Numbers)); r != nil {
		return nil, r
	}
	out := make([]Result, len(e.Numbers))
	for i, n := range e.Numbers {
		j := s.jobs.get(n)
		if j == nil {
			out[i].Refusal = state.NoSuchJob(fmt.Sprint(n))
			continue
		}
		out[i] = e.act(s, j)
		out[i].Before = j.Status()
		out[i].After = s.jobs.get(n).Status()
	}
	return out, nil
}

// store notes that so many jobs get a line in their timelines, which stay for ever,
// and refuses what is too much in a day. Jobs can be cancelled in any case.
func (e Act) store(s *step, jobs int) *state.Refusal {
	more := quota.Amount{Records: int64(jobs)}
	if e.Action != Cancel && !e.Operator {
		if r := s.jobs.tooMuch(e.By, more); r != nil {
			return r
		}
	}
	s.jobs.stored(e.By, more)
	return nil
}

func (e Act) audit(list []Result) Audit {
	var jobs, how strings.Builder
	for i, o := range list {
		fmt.Fprintf(&jobs, " %d", e.Numbers[i])
		switch {
		case o.Refusal != nil:
			fmt.Fprintf(&how, "; %d refused", e.Numbers[i])
		case o.Before != o.After:
			fmt.Fprintf(&how, "; %d %s -> %s", e.Numbers[i], o.Before, o.After)
		}
	}
	return Audit{Object: "jobs" + jobs.String(), Change: string(e.Action) + how.String()}
}

func (e Act) act(s *step, j *state.Job) Result {
	switch e.Action {
	case Cancel:
		return e.cancel(s, j)
	case Hold, UHold:
		return e.hold(s, j)
	case Release:
		return e.release(s, j)
	case Update:
		return e.update(s, j)
	}
	if j.Tasks != nil && !j.State.Final() {
		return e.actActive(s, j)
	}
	switch e.Action {
	case Pause:
		return e.pause(s, j)
	case Resume:
		return e.resume(s, j)
	case Requeue, RequeueHold:
		return e.requeue(s, j)
	case Halt:
		return e.haltByOrder(s, j)
	}
	return e.signal(s, j)
}

func (e Act) cancel(s *step, j *state.Job) Result {
	switch {
	case j.State.Final():
		return Result{Message: "already " + string(j.State)}
	case j.Ending != nil && j.Ending.Then == job.Cancelled:
		return Result{Message: "is being cancelled already"}
	}
	s.arrays.stop(j, state.Ending{Then: job.Cancelled, Reason: e.reason(j), Text: "cancelled by " + e.By})
	if j.Tasks != nil {
		s.arrays.update()
	}
	if s.jobs.get(j.Number).State.Final() {
		return Result{Message: "cancelled"}
	}
	return Result{Message: "is being cancelled"}
}

// pause makes a running job's processes stand still. It keeps its resources,
// and its time limit goes on.
func (e Act) pause(s *step, j *state.Job) Result {
	switch {
	case j.State != job.Running || j.Ending != nil:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a job that runs can be paused", j.Number, j.Words())}}
	case j.Attempt.Paused != "":
		return Result{Message: "is paused already"}
	}
	s.attempts.takeBack(j, fmt.Sprintf("job %s is paused", j.ID()))
	e.setPaused(s, s.jobs.get(j.Number), e.By, "paused by "+e.By)
	return Result{Message: "paused; it keeps its resources and its time limit goes on"}
}

func (e Act) resume(s *step, j *state.Job) Result {
	switch {
	case !j.State.Active() || j.Ending != nil:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a paused job can be resumed", j.Number, j.Words())}}
	case j.Attempt.Paused == "":
		return Result{Message: "is not paused"}
	}
	e.setPaused(s, j, "", "resumed by "+e.By)
	return Result{Message: "resumed"}
}

func (Act) setPaused(s *step, j *state.Job, by, line string) {
	at := *j.Attempt
	at.Paused = by
	s.nodes.wakeAll(s.jobs.change(j, line, func(j *state.Job) { j.Attempt = &at }))
}

// signals are those that can be sent to a job that goes on.
var signals = []string{"HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "CONT", "WINCH"}

// maxSent bounds the signals that wait for a job's nodes to deliver them.
const maxSent = 16

// reason is who ended a job by this order.
func (e Act) reason(j *state.Job) job.Reason {
	if e.By != j.Owner.User {
		return job.ByAdmin
	}
	return job.ByUser
}

// waitAgain refuses to put a running job back into the queue for its user, who
// could otherwise have more in it than may be submitted.
func (e Act) waitAgain(s *step, j *state.Job) *state.Refusal {
	if e.Operator {
		return nil
	}
	r := s.jobs.tooMany(picture.Job(j.Number, j.Owner, j.Request, j.Submitted), 1)
	if r != nil {
		r.Hint = "let some of those that wait run first, or cancel some"
	}
	return r
}

// requeue ends a running attempt; the job waits again.
func (e Act) requeue(s *step, j *state.Job) Result {
	switch {
	case j.State.Final():
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: a job that has ended does not run again", j.Number, j.State),
			Hint: fmt.Sprintf("submit it as a new one; gqueue show --json %d has its document", j.Number)}}
	case j.State.Pending() && e.Action == RequeueHold:
		return e.hold(s, j)
	case j.State.Pending():
		return Result{Message: "waits already"}
	case j.Ending != nil:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is being ended", j.Number)}}
	}
	if r := e.waitAgain(s, j); r != nil {
		return Result{Refusal: r}
	}
	how, message := state.Ending{Then: job.Queued, Reason: e.reason(j), Text: "requeued by " + e.By}, "is being ended and will wait again"
	if e.Action == RequeueHold {
		how.Then, how.Reason, how.Text, message = job.OnHold, e.holder(j), "requeued and held by "+e.By, "is being ended and will wait on hold"
	}
	s.attempts.stop(j, how)
	return Result{Message: message}
}

// signal sends a signal to a job's processes, which go on.
func (e Act) signal(s *step, j *state.Job) Result {
	switch {
	case !slices.Contains(signals, e.Signal):
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("signal %q cannot be sent to a job", e.Signal),
			Hint: "signals: " + strings.Join(signals, ", ") + "; gcancel --pause makes a job stand still, and gcancel ends it"}}
	case j.State != job.Running || j.Ending != nil:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: only a job that runs can be sent a signal", j.Number, j.Words())}}
	case len(j.Attempt.Sent) >= maxSent:
		return Result{Refusal: &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("%d signals wait already for job %d's nodes to deliver them", maxSent, j.Number),
			Hint: "try again later"}}
	}
	at := *j.Attempt
	at.SentSeq++
	at.Sent = append(slices.Clone(at.Sent), state.Sent{Seq: at.SentSeq, Name: e.Signal, By: e.By})
	s.nodes.wakeAll(s.jobs.change(j, fmt.Sprintf("%s sends signal %s", e.By, e.Signal), func(j *state.Job) { j.Attempt = &at }))
	return Result{Message: fmt.Sprintf("is sent %s", e.Signal)}
}
