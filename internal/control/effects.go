package control

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Effects is what a step asks of its owner. The order is the promise that
// nothing acknowledged is lost: first Records are made durable, all of them
// together; only then is the event answered, are the nodes in Wake told, and may
// anyone see a View taken after the step.
type Effects struct {
	Records []state.Record // must be durable before anything below happens
	Wake    []string       // nodes whose desired set changed
	Changed []job.Number   // jobs that changed, for those who watch them
	Moved   []Moved        // changes of state that somebody wants a mail about

	// Missed is, for each job that starts, how much later it starts than was
	// first promised to it; negative if sooner. For the honesty metric only.
	Missed []sched.Time

	Prepulled []node.Prepulled // what nodes have pulled ahead; for the metric only

	noRecords bool // see Config
}

// Moved is a job's change of state.
type Moved struct {
	Job      job.Number
	From, To job.State // From is empty for a new job
}

// Add appends another step's effects.
func (e *Effects) Add(o Effects) {
	e.Records = append(e.Records, o.Records...)
	e.Wake = append(e.Wake, o.Wake...)
	e.Changed = append(e.Changed, o.Changed...)
	e.Moved = append(e.Moved, o.Moved...)
	e.Missed = append(e.Missed, o.Missed...)
	e.Prepulled = append(e.Prepulled, o.Prepulled...)
}

// record adds records, if any are wanted.
func (e *Effects) record(list ...state.Record) {
	if !e.noRecords {
		e.Records = append(e.Records, list...)
	}
}

// job adds that a job is new or another now, and the line of its timeline, if
// there is one.
func (e *Effects) job(now sched.Time, j *state.Job, before job.State, text string) {
	e.Changed = append(e.Changed, j.Number)
	if e.noRecords {
		return
	}
	e.record(state.Record{Kind: state.KindJob, Job: j.Number, Value: state.Encode(j)})
	if text == "" && j.State == before {
		return
	}
	l := state.Line{Time: now, Message: text}
	if j.State != before {
		l.State = j.State
	}
	e.record(state.Record{Kind: state.KindEvent, Job: j.Number, Seq: j.Version, Value: state.Encode(l)})
}

// mail notes a change of state for those who want a mail about it; of an array
// that is the whole, not each task.
func (e *Effects) mail(j *state.Job, from job.State) {
	if j.Request.Mails && j.Parent == 0 && j.Cron == nil {
		e.Moved = append(e.Moved, Moved{Job: j.Number, From: from, To: j.State})
	}
}
