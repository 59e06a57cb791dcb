package control

import (
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// Effects is what a step asks of its owner. The order is the promise that
// nothing acknowledged is lost: first Records are made durable, all of them
// together; only then is the Answer given, are the nodes in Wake told, and may
// anyone see a View taken after the step.
type Effects struct {
	Records []Record     // must be durable before anything below happens
	Answer  any          // for whoever sent the event; its type goes with the event's
	Wake    []string     // nodes whose desired set changed
	Changed []job.Number // jobs that changed, for those who watch them
	Moved   []Moved      // changes of state that somebody wants a mail about

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

// Kind is a family of records: the first byte of their keys.
type Kind byte

// The kinds. Records are the latest state of a thing, not a log of changes,
// but for events.
const (
	KindJob     Kind = 'j' // by Job: a job that is live or ended lately
	KindHistory Kind = 'h' // by Job: a job that ended long ago; the same value
	KindSpec    Kind = 's' // by Job: the native document
	KindSecret  Kind = 'k' // by Job: sealed registry credentials and secrets, deleted at the end
	KindEvent   Kind = 'e' // by Job and Seq: the timeline
	KindAttempt Kind = 'a' // by Job and Seq: attempts that have ended
	KindTasks   Kind = 'b' // by Job and Seq: the tasks of an array as asked (0), and their states (block Seq-1)
	KindUUID    Kind = 'i' // by Name (UUID): number of a job in history
	KindNode    Kind = 'n' // by Name
	KindUsage   Kind = 'u' // by Name: the ledger's rows
	KindDay     Kind = 'd' // by Seq (day) and Name: what a user held in a project on a day that is over
	KindEnded   Kind = 'x' // by Seq (when, Unix milliseconds) and Job: jobs by their end, see Ended
	KindWindow  Kind = 'w' // by Name: advance reservations
	KindFloor   Kind = 'f' // by Job: lower numbers are not given to jobs any more

	KindRestored Kind = 'r' // the one with Job 0: these records are from a backup, see Restored; read by the process around

	// Of the process around the controller, which it stores with these.
	KindToken   Kind = 't' // by Name (id): what is known of a token, not the token
	KindNodeKey Kind = 'c' // by Name of the node: the key that it joined with
	KindProject Kind = 'p' // by Name: projects that were made while the controller ran
	KindAudit   Kind = 'l' // by Seq: who changed what
)

// Record is one thing to be stored. A nil Value deletes it.
type Record struct {
	Kind  Kind
	Job   job.Number
	Seq   uint64
	Name  string
	Value []byte
}

// Refusal is the answer to an event that the controller will not do, in words
// for the user.
type Refusal struct {
	Code    Code
	Message string
	Hint    string
	Path    string // in the job document, where the refusal is about one field
}

func (r *Refusal) Error() string { return r.Message }

// Code is the kind of a refusal.
type Code string

// The codes.
const (
	NotFound      Code = "not_found"
	Conflict      Code = "conflict"
	Denied        Code = "denied"
	Unsatisfiable Code = "unsatisfiable"
	OverLimit     Code = "over_limit" // the queue, or what the user, project or QOS may have in it, is full
)
