package control

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Effects is what a step asks of its owner. The order is the promise that
// nothing acknowledged is lost: first Records are made durable, all of them
// together; only then is the Answer given, are the nodes in Wake told, and may
// anyone see a View taken after the step.
type Effects struct {
	Records []state.Record // must be durable before anything below happens
	Answer  any            // for whoever sent the event; its type goes with the event's
	Wake    []string       // nodes whose desired set changed
	Changed []job.Number   // jobs that changed, for those who watch them
	Moved   []Moved        // changes of state that somebody wants a mail about

	// Missed is, for each job that starts, how much later it starts than was
	// first promised to it; negative if sooner. For the honesty metric only.
	Missed []sched.Time

	Prepulled []node.Prepulled // what nodes have pulled ahead; for the metric only
}

// Moved is a job's change of state.
type Moved struct {
	Job      job.Number
	From, To job.State // From is empty for a new job
}

// Add appends another step's effects. Its answer is for the caller to deal with.
func (e *Effects) Add(o Effects) {
	e.Records = append(e.Records, o.Records...)
	e.Wake = append(e.Wake, o.Wake...)
	e.Changed = append(e.Changed, o.Changed...)
	e.Moved = append(e.Moved, o.Moved...)
	e.Missed = append(e.Missed, o.Missed...)
	e.Prepulled = append(e.Prepulled, o.Prepulled...)
}
