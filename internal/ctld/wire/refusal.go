package wire

import (
	"gbatch/internal/api"
	"gbatch/internal/state"
)

// RefusalStatus is the HTTP status of each reason why the controller refuses.
var RefusalStatus = map[state.Code]int{
	state.NotFound: 404, state.Conflict: 409, state.Denied: 403, state.Unsatisfiable: 422, state.OverLimit: 409,
}

// Refused is a refusal as the wire has it.
func Refused(r *state.Refusal) *api.Error {
	e := &api.Error{Status: RefusalStatus[r.Code], Code: string(r.Code), Message: r.Message, Hint: r.Hint}
	if r.Path != "" {
		e.Problems = []api.Problem{{Path: r.Path, Message: r.Message}}
		e.Message = "refused:"
	}
	return e
}
