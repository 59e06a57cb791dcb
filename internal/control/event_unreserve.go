package control

import (
	"fmt"

	"gbatch/internal/state"
)

// Unreserve removes a reservation.
type Unreserve struct{ Name string }

func (e Unreserve) apply(c *step) (None, *state.Refusal) {
	if !c.queue.sched.Unreserve(e.Name) {
		return None{}, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no reservation %q", e.Name)}
	}
	c.dropWindow(e.Name)
	return None{}, nil
}

func (e Unreserve) audit(None) Audit {
	return Audit{Object: "reservation " + e.Name, Change: "removed"}
}
