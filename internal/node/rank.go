package node

import (
	"strconv"

	"gbatch/internal/job"
)

// Phase is how far a rank has come on its node. It only moves forward.
type Phase string

// The phases, in order.
const (
	PhaseAssigned Phase = "assigned" // the controller's word; the node has not answered yet
	PhaseAccepted Phase = "accepted"
	PhasePulling  Phase = "pulling"
	PhaseStarting Phase = "starting"
	PhaseReady    Phase = "ready" // of a gang: all is there, and it waits for the others
	PhaseRunning  Phase = "running"
	PhaseEnded    Phase = "ended"
)

var phaseOrder = map[Phase]int{
	PhaseAssigned: 0, PhaseAccepted: 1, PhasePulling: 2, PhaseStarting: 3, PhaseReady: 4, PhaseRunning: 5, PhaseEnded: 6,
}

// Known says whether p is one of the phases.
func (p Phase) Known() bool { _, ok := phaseOrder[p]; return ok }

// After says that p is further than q.
func (p Phase) After(q Phase) bool { return phaseOrder[p] > phaseOrder[q] }

// Begun says that the program may have begun: a node does not forget such a rank before
// the controller lets go of it.
func (p Phase) Begun() bool { return p == PhaseRunning }

// Exit is how a rank ended. Times are Unix milliseconds of the node's clock.
type Exit struct {
	Code       int        `json:"code"`             // the container's exit code; 128+signal if a signal ended it
	Signal     int        `json:"signal,omitempty"` // that ended it, 0 if none
	Reason     job.Reason `json:"reason,omitempty"` // empty when Code is 0
	Message    string     `json:"message,omitempty"`
	Later      bool       `json:"later,omitempty"`     // another try may go well: neither job nor node are at fault, but what they were waiting for
	StartedMS  int64      `json:"startedMs,omitempty"` // first instruction; 0 if it never ran
	EndedMS    int64      `json:"endedMs"`
	FreeMS     int64      `json:"freeMs,omitempty"` // when what it held could be given to others; 0: with its end
	PeakMem    int64      `json:"peakMemBytes,omitempty"`
	CPUSeconds float64    `json:"cpuSeconds,omitempty"`
	GPU        *GPUUse    `json:"gpu,omitempty"`    // nil: it had none, or its node has no samples
	Silent     bool       `json:"silent,omitempty"` // it wrote nothing: its log is empty, and kept nowhere

	// WallMS is by how much the node's wall clock was ahead of its clock from boot when
	// these times were taken; 0: that is not known. Nobody else is told.
	WallMS int64 `json:"-"`
}

// OnClock moves an end's times to the wall clock of now, which is ahead of the clock from
// boot by so much: it may have been set since.
func (e *Exit) OnClock(wallMS int64) {
	by := wallMS - e.WallMS
	if e.WallMS == 0 || -1000 < by && by < 1000 {
		return
	}
	e.WallMS = wallMS
	e.EndedMS += by
	if e.StartedMS > 0 {
		e.StartedMS += by
	}
	if e.FreeMS > 0 {
		e.FreeMS += by
	}
}

// OnClock is Exit.OnClock for what is said of a rank.
func (s *RankStatus) OnClock(wallMS int64) {
	if s.Exit != nil {
		s.Exit.OnClock(wallMS)
		if s.Exit.StartedMS > 0 {
			s.StartedMS = s.Exit.StartedMS // else it would begin after its end
		}
	} else if by := wallMS - s.WallMS; s.WallMS != 0 && s.StartedMS > 0 && (by <= -1000 || by >= 1000) {
		s.StartedMS, s.WallMS = s.StartedMS+by, wallMS
	}
}

// OK says that the rank succeeded.
func (e Exit) OK() bool { return e.Code == 0 && e.Reason == job.None }

// SameJob says whether two UUIDs are of one job. It is what tells a job from
// another that was given the same number, as happens when the controller's
// records go back to an older state. An empty one is of a program that did not
// say it, and fits all.
func SameJob(a, b string) bool { return a == b || a == "" || b == "" }

// Done is how far a program says that it is.
type Done struct {
	Percent int    `json:"percent"` // 0 to 100; never falls
	Name    string `json:"name,omitempty"`
}

// String is as people read it: 42% (epoch-3).
func (d *Done) String() string {
	switch {
	case d == nil:
		return ""
	case d.Name == "":
		return strconv.Itoa(d.Percent) + "%"
	}
	return strconv.Itoa(d.Percent) + "% (" + d.Name + ")"
}

// RankStatus is a node's word on one rank that it holds.
type RankStatus struct {
	ID        job.RankID        `json:"id"`
	UUID      string            `json:"uuid,omitempty"` // of its job; empty: an older node's word, or its record is damaged
	Phase     Phase             `json:"phase"`
	Progress  string            `json:"progress,omitempty"` // what the node does for it, as "pulling 12 of 80 MiB"
	Cores     string            `json:"cores,omitempty"`    // core ids as the kernel writes lists
	Image     string            `json:"image,omitempty"`    // manifest digest
	Ports     []job.PortMapping `json:"ports,omitempty"`    // as they are, with the node's ports
	PullMS    int64             `json:"pullMs,omitempty"`   // how long it held its resources until the image was there
	Done      *Done             `json:"done,omitempty"`     // while running: what the program says of its progress
	Secrets   uint32            `json:"secrets,omitempty"`  // version of the secrets that it has
	StartedMS int64             `json:"startedMs,omitempty"`
	Exit      *Exit             `json:"exit,omitempty"` // with PhaseEnded

	Resize *Resized `json:"resize,omitempty"` // the last resize that was ordered and carried out, or not

	Signalled uint32 `json:"signalled,omitempty"` // the last signal of those ordered that was sent
	Stopping  bool   `json:"stopping,omitempty"`  // it is sent the signal to end, or was

	WallMS int64 `json:"-"` // when StartedMS was taken, as Exit.WallMS
}

// Prepulled is what became of a waiting job's image that a node was to have
// ahead of its start.
type Prepulled struct {
	Job    job.Number `json:"job"`
	PullMS int64      `json:"pullMs"`
	Error  string     `json:"error,omitempty"` // empty: it is there
}

// Resized is how a node has carried out an order for other CPU and memory.
type Resized struct {
	Seq   uint64 `json:"seq"`             // of the order
	Error string `json:"error,omitempty"` // why it was not done; nothing has changed then
}
