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

	classReasons map[uint64]waitReason // by class
	kindReasons  map[uint64]waitReason // by kind, of classes that have none
	first        JobID                 // of strict order: blocks all that have no reason of their own; 0 if none does
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
	CodeLimit           Code = "Limit"       // its user, project, qos or bucket has all it may have
	CodePartition       Code = "Partition"   // none that it names lets jobs start
	CodeDependency      Code = "Dependency"  // for the owner: the scheduler knows no dependencies
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

// placing is a job's place in the plan.
type placing struct {
	e     *entry
	kind  *jobKind // of e, or with a shorter limit
	at    Time
	spots []spot
}

// book puts a job's place into the plan.
func (r *round) book(p placing) {
	kind := p.kind
	for _, sp := range p.spots {
		r.calendar.timeline(sp.node).book(booking{p.at, p.at + kind.predicted, kind.use(sp), p.e.id})
	}
	r.calendar.licenses.Reserve(p.e.id, p.at, p.at+kind.predicted, kind.Shape.Licenses)
	r.usage.count(p.e.class, p.at, kind.milliAt(p.spots))
	r.placed = append(r.placed, p)
	r.plan.Reservations = append(r.plan.Reservations, Reservation{Job: p.e.id, At: p.at, Ranks: kind.allocations(p.spots), Limit: kind.granted(p.e.class)})
}

// replan gives all jobs that have a reservation a new one, in the same order, by
// what is expected to be free now: the next round will do the same. It returns
// the places that they had, for restore, and false where one of the jobs that
// others are ended for would not start soon any more.
func (r *round) replan(soon Time) (old []placing, ok bool) {
	old = r.unplan()
	for _, p := range old {
		next := r.soonest(p.e, r.now)
		if next.spots == nil || next.at > soon && r.paid[p.e.id] {
			return old, false
		}
		r.book(next)
	}
	return old, true
}

// restore puts the places back that replan took.
func (r *round) restore(old []placing) {
	r.unplan()
	for _, p := range old {
		r.book(p)
	}
}

// unplan takes all places out of the plan, but for promises of the last round
// to jobs that were not looked at yet.
func (r *round) unplan() []placing {
	old := r.placed
	r.placed, r.plan.Reservations = nil, nil
	clear(r.usage.planned)
	r.calendar.licenses.Release(func(id JobID) bool { _, promised := r.promises[id]; return !promised })
	for _, n := range r.calendar.lined {
		l := r.calendar.timeline(n)
		booked := l.booked
		r.calendar.project(n, l)
		for _, b := range booked {
			if _, promised := r.promises[b.job]; promised {
				l.book(b)
			}
		}
	}
	return old
}
