package sched

import "gbatch/accounting"

// Input is all that a decision depends on.
type Input struct {
	Now    Time
	State  *State
	Shares *accounting.Shares // nil: everybody's fair-share factor is the same
	Last   []Reservation      // of the plan before; Conservative keeps them, other modes do not look at it
}

// Plan is a decision. Equal input gives an equal plan.
type Plan struct {
	Starts       []Start       // in the order in which they were decided
	Reservations []Reservation // of blocked jobs, by priority
	Halts        []Halt        // running jobs to be ended for others
	Rejects      []Reject      // waiting jobs that must not wait any longer, by JobID
	Wake         Time          // the earliest moment at which time alone may change the decision; 0: none
	Stats        Stats

	classReasons map[uint64]waitReason // why the jobs of a class wait, by its id
	kindReasons  map[uint64]waitReason // the same of a kind, for its classes that have no reason of their own
	first        JobID                 // in strict order, the job that all after it wait for, where they have no reason of their own; 0 if there is none
	now          Time
}

// Start is a job that starts now.
type Start struct {
	Job        JobID
	Ranks      []Allocation
	Limit      Time   // shorter than the job's own, as it allows, for it starts sooner by that; 0: its own
	Partition  string // of those that it names, the one that it runs in
	Backfilled bool   // it went past a job of higher priority that has a reservation
	Until      Time   // no other job of its owner goes first for having waited long until then; 0: it had not
}

// Reservation is the place in the plan of a job that cannot start now.
type Reservation struct {
	Job   JobID
	At    Time
	Ranks []Allocation
	Limit Time // as of Start
}

// Halt asks for the end of a running job so that another can start. Tell the
// State by Halting once the job was told; a new plan does not ask for it again.
type Halt struct {
	Job  JobID
	For  JobID
	Lost int64 // GPU-milliseconds of work, in thousandths
}

// Reject is a waiting job that is to be failed.
type Reject struct {
	Job    JobID
	Reason Reason
}

// Stats counts the work of a round.
type Stats struct {
	Waiting, Running, Classes, Kinds int
	Evaluated                        int // jobs looked at
	Searches                         int // searches for a place now
	Visited                          int // nodes looked at in these
	Planned                          int // searches for a place in the future
	Truncated                        bool
}

// Code is a kind of reason, in the words of Slurm's REASON column.
type Code string

// The codes, in the order in which Explain lists them.
const (
	CodeNever           Code = "Never"       // no node, as they are now, can ever hold it, or it is beyond a limit by itself
	CodeLimit           Code = "Limit"       // its user, project, qos or bucket (see Job.Bucket) has all it may have
	CodePartition       Code = "Partition"   // none that it names lets jobs start
	CodeDependency      Code = "Dependency"  // never of a plan: for those who use this package, which knows no dependencies
	CodeBeginTime       Code = "BeginTime"   // not before
	CodeReservation     Code = "Reservation" // a window or maintenance keeps it off
	CodeLicenses        Code = "Licenses"    // too few of a licence are free
	CodeResources       Code = "Resources"   // not enough is free
	CodePriority        Code = "Priority"    // jobs before it take what is free
	CodeDeadline        Code = "DeadLine"    // of Reject: notAfter or the longest queue time has passed
	CodeInteractive     Code = "Interactive" // of Reject: no room at once
	CodeNotYetEvaluated Code = "NotYetEvaluated"
)

// Reason is why a job does not start, in a code for programs and a sentence
// with numbers for people.
type Reason struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
	At   Time   `json:"at,omitempty"` // planned start, where the plan has one
}

// String is "Code: text".
func (r Reason) String() string {
	if r.Text == "" {
		return string(r.Code)
	}
	return string(r.Code) + ": " + r.Text
}
