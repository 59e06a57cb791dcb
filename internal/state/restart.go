package state

import (
	"gbatch/internal/job"
	"gbatch/sched"
)

// Restart says what a job continues.
type Restart struct {
	Of      job.Number `json:"of"`              // the job before it
	Initial [16]byte   `json:"initial"`         // UUID of the first one
	Count   int        `json:"count"`           // jobs before it
	Tries   uint32     `json:"tries"`           // attempts that they have begun
	Image   string     `json:"image,omitempty"` // digest that they ran
}

// Retried is what a job's failures leave for the next decision.
type Retried struct {
	Failures int        `json:"failures,omitempty"` // that count against Retry.Limit
	Row      int        `json:"row,omitempty"`      // failures one soon after the other, of any kind
	Since    sched.Time `json:"since,omitempty"`    // the first of the row
	Until    sched.Time `json:"until,omitempty"`    // no try before
}
