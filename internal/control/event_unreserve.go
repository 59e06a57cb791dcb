package control

import (
	"fmt"

	"gbatch/internal/state"
)

// Unreserve removes a reservation.
type Unreserve struct{ Name string }

func (e Unreserve) apply(s *step) (none, *state.Refusal) {
	if !s.queue.unreserve(e.Name) {
		return none{}, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no reservation %q", e.Name)}
	}
	return none{}, nil
}

func (e Unreserve) audit(none) Audit {
	return Audit{Object: "reservation " + e.Name, Change: "removed"}
}
