package state

import (
	"gbatch/internal/job"
	"gbatch/sched"
)

// Arrays are those whose tasks those of the job wait for, one by one.
func (w *Waits) Arrays() []job.Number {
	if w == nil {
		return nil
	}
	return w.Tasks
}

// Waits is what a job waits for before the scheduler may look at it.
type Waits struct {
	Needs []Need     `json:"needs,omitempty"` // that have not come true
	Any   bool       `json:"any,omitempty"`   // one is enough
	Met   bool       `json:"met,omitempty"`   // enough of them have come true
	Since sched.Time `json:"since,omitempty"` // with Met: it may start from then on

	Tasks []job.Number `json:"tasks,omitempty"` // of an array: those whose tasks its own wait for one by one; none that is over
}

// Need is a condition on one job.
type Need struct {
	Type  string     `json:"type"`           // one of job.DependencyTypes
	Job   job.Number `json:"job"`            // of a singleton: one of those that are left
	Task  *int       `json:"task,omitempty"` // index of the task of Job that is meant, while that is no job yet
	Delay sched.Time `json:"delay,omitempty"`
}

// Unmet says that the job waits for others still.
func (w *Waits) Unmet() bool { return w != nil && !w.Met }
