package job

import (
	"fmt"
	"slices"
)

// State is a job's state, with GPULab's names.
type State string

// The states. Pending: ONHOLD, QUEUED. Active (holds an allocation): ASSIGNED,
// STARTING, RUNNING, MUSTHALT, HALTING. Final: the rest.
const (
	OnHold    State = "ONHOLD"
	Queued    State = "QUEUED"
	Assigned  State = "ASSIGNED"
	Starting  State = "STARTING"
	Running   State = "RUNNING"
	MustHalt  State = "MUSTHALT"
	Halting   State = "HALTING"
	Halted    State = "HALTED"
	Finished  State = "FINISHED"
	Failed    State = "FAILED"
	Cancelled State = "CANCELLED"
	Deleted   State = "DELETED"
)

// States lists all states in the order of a job's life.
var States = []State{OnHold, Queued, Assigned, Starting, Running, MustHalt, Halting, Halted, Finished, Failed, Cancelled, Deleted}

// Completing is what lists and filters call an active job that was ordered to end,
// whatever its state: its ranks have a while to do so. No job has it as its state.
const Completing State = "COMPLETING"

// Pending says that the job waits and holds nothing.
func (s State) Pending() bool { return s == OnHold || s == Queued }

// Active says that the job holds an allocation on a node.
func (s State) Active() bool {
	switch s {
	case Assigned, Starting, Running, MustHalt, Halting, Completing:
		return true
	}
	return false
}

// Final says that nothing more can happen to the job but its removal.
func (s State) Final() bool { return !s.Pending() && !s.Active() }

// moves is the transition table: from each state, the states that may follow.
// QUEUED follows an active state when an attempt ends and is tried again.
var moves = map[State][]State{
	OnHold:   {Queued, Failed, Cancelled},
	Queued:   {OnHold, Assigned, Failed, Cancelled},
	Assigned: {Starting, Running, Queued, OnHold, Finished, Failed, Cancelled},
	Starting: {Running, Queued, OnHold, Finished, Failed, Cancelled},
	Running:  {MustHalt, Queued, OnHold, Finished, Failed, Cancelled},
	MustHalt: {Halting, Halted, Queued, OnHold, Finished, Failed, Cancelled},
	Halting:  {Halted, Queued, OnHold, Finished, Failed, Cancelled},

	Halted:    {Deleted},
	Finished:  {Deleted},
	Failed:    {Deleted},
	Cancelled: {Deleted},
}

// CanMove says whether the transition table has the step from -> to.
func CanMove(from, to State) bool {
	return slices.Contains(moves[from], to)
}

// parentMoves is the table of a job with tasks: its tasks hold allocations and
// it never does, so it only waits until they are over.
var parentMoves = map[State][]State{
	OnHold: {Queued, Finished, Failed, Cancelled},
	Queued: {OnHold, Finished, Failed, Cancelled},
}

// CanMoveParent is CanMove for a job with tasks.
func CanMoveParent(from, to State) bool { return slices.Contains(parentMoves[from], to) }

// MoveError is a step that the transition table does not have.
type MoveError struct{ From, To State }

func (e *MoveError) Error() string {
	return fmt.Sprintf("a job that is %s cannot become %s", e.From, e.To)
}
