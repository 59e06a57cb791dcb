package control

import (
	"fmt"

	"gbatch/internal/state"
)

// Unreserve removes a reservation.
type Unreserve struct{ Name string }

func (e Unreserve) apply(s *step) (None, *state.Refusal) {
	if !s.queue.unreserve(e.Name) {
		return None{}, &state.Refusal{Code: state.NotFound, Message: fmt.Sprintf("there is no reservation %q", e.Name)}
	}
	return None{}, nil
}

func (e Unreserve) audit(None) Audit {
	return Audit{Object: "reservation " + e.Name, Change: "removed"}
}
