package wire

import (
	"gbatch/internal/api"
	"gbatch/internal/control"
)

// RefusalStatus is the HTTP status of each reason why the controller refuses.
var RefusalStatus = map[control.Code]int{
	control.NotFound: 404, control.Conflict: 409, control.Denied: 403, control.Unsatisfiable: 422, control.OverLimit: 409,
}

// Refused is a refusal as the wire has it.
func Refused(r *control.Refusal) *api.Error {
	e := &api.Error{Status: RefusalStatus[r.Code], Code: string(r.Code), Message: r.Message, Hint: r.Hint}
	if r.Path != "" {
		e.Problems = []api.Problem{{Path: r.Path, Message: r.Message}}
		e.Message = "refused:"
	}
	return e
}
