package state

import (
	"gbatch/internal/job"
	"gbatch/sched"
)

// Line is one entry of a job's timeline, as stored under KindEvent.
type Line struct {
	Time    sched.Time `json:"t"`
	State   job.State  `json:"s,omitempty"` // entered, if it changed
	Message string     `json:"m,omitempty"`
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
	KindIDs     Kind = 'o' // by Name of the user: the range of ids of their containers
)

// Record is one thing to be stored. A nil Value deletes it.
type Record struct {
	Kind  Kind
	Job   job.Number
	Seq   uint64
	Name  string
	Value []byte
}
