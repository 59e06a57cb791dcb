package state

import (
	"gbatch/sched"
)

// Resizing is what a rank's node was asked to give it.
type Resizing struct {
	Seq    uint64           `json:"seq"` // the node's answer names it
	To     sched.Allocation `json:"to"`
	From   sched.Allocation `json:"from"`             // what it has again if the node refuses
	Failed string           `json:"failed,omitempty"` // why the node refused; nothing is asked any more
}

// Asked is what the rank's node shall do, nil for nothing.
func (r *Rank) Asked() *Resizing {
	if r.Resize == nil || r.Resize.Failed != "" {
		return nil
	}
	return r.Resize
}
