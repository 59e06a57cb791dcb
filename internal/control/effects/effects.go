// Package effects is what a step of the controller asks of its owner: what must be
// stored, who is to be told and what has changed. It decides nothing.
package effects

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Set is what a step asks of its owner. The order is the promise that
// nothing acknowledged is lost: first Records are made durable, all of them
// together; only then is the event answered, are the nodes in Wake told, and may
// anyone see a View taken after the step.
type Set struct {
	Records []state.Record // must be durable before anything below happens
	Wake    []string       // nodes whose desired set changed
	Changed []job.Number   // jobs that changed, for those who watch them
	Moved   []Moved        // changes of state that people may want to hear of

	Nodes []NodeUpdate // what became of nodes, for the log

	// Missed is, for each job that starts, how much later it starts than was
	// first promised to it; negative if sooner. For the honesty metric only.
	Missed []sched.Time

	Prepulled []node.Prepulled // what nodes have pulled ahead; for the metric only
}

// NodeUpdate is something that happened to a node.
type NodeUpdate struct {
	Name string
	state.NodeChange
}

// Moved is a job's change of state.
type Moved struct {
	Job      job.Number
	User     string    // whose it is
	From, To job.State // From is empty for a new job
	Version  uint64    // of the job, by the change
	Told     bool      // the job's document names who is to be told
	Percent  int       // of its time limit that is used, where that is all that changed; else 0
}

// Add appends those of another step.
func (e *Set) Add(o Set) {
	e.Records = append(e.Records, o.Records...)
	e.Wake = append(e.Wake, o.Wake...)
	e.Changed = append(e.Changed, o.Changed...)
	e.Moved = append(e.Moved, o.Moved...)
	e.Nodes = append(e.Nodes, o.Nodes...)
	e.Missed = append(e.Missed, o.Missed...)
	e.Prepulled = append(e.Prepulled, o.Prepulled...)
}

// Output is the effects of the step under way, and when it happens. Each part of
// the controller adds to it what it has done.
type Output struct {
	Set
	Now       sched.Time
	NoRecords bool // nothing is stored: in a simulation that never restarts, and while what is stored is loaded
}

// Begin is the beginning of a step: nothing is asked yet.
func (o *Output) Begin(now sched.Time, noRecords bool) { *o = Output{Now: now, NoRecords: noRecords} }

// Store adds records that have their values.
func (o *Output) Store(list ...state.Record) {
	if !o.NoRecords {
		o.Records = append(o.Records, list...)
	}
}

// Record adds a record of a value. A pointer to it costs nothing where there are no
// records.
func (o *Output) Record(r state.Record, value any) {
	if !o.NoRecords {
		r.Value = state.Encode(value)
		o.Records = append(o.Records, r)
	}
}

// Job adds that a job is new or another now, and the line of its timeline, if
// there is one.
func (o *Output) Job(j *state.Job, before job.State, text string) {
	o.Changed = append(o.Changed, j.Number)
	if !o.NoRecords {
		o.Records = append(o.Records, state.Record{Kind: state.KindJob, Job: j.Number, Value: j.Encode()})
	}
	if o.NoRecords || text == "" && j.State == before {
		return
	}
	l := state.Line{Time: o.Now, Message: text}
	if j.State != before {
		l.State = j.State
	}
	o.Record(state.Record{Kind: state.KindEvent, Job: j.Number, Seq: j.Version}, l)
}

// Move notes a change of state for those who want to hear of it; of an array that
// is the whole, not each task.
func (o *Output) Move(j *state.Job, from job.State) {
	o.moved(j, from, 0)
}

// Warn notes for those who want to hear of it how much of its time limit a job has used.
func (o *Output) Warn(j *state.Job, percent int) { o.moved(j, j.State, percent) }

func (o *Output) moved(j *state.Job, from job.State, percent int) {
	if j.Parent == 0 && j.Cron == nil && !o.NoRecords {
		o.Moved = append(o.Moved, Moved{Job: j.Number, User: j.Owner.User, From: from, To: j.State, Version: j.Version, Told: j.Request.Told, Percent: percent})
	}
}
