package ctld

import (
	"gbatch/internal/api"
	"gbatch/internal/control"
)

// refusalStatus is the HTTP status of each reason why the controller refuses.
var refusalStatus = map[control.Code]int{
	control.NotFound: 404, control.Conflict: 409, control.Denied: 403, control.Unsatisfiable: 422, control.OverLimit: 409,
}

// refused is a refusal as the wire has it.
func refused(r *control.Refusal) *api.Error {
	e := &api.Error{Status: refusalStatus[r.Code], Code: string(r.Code), Message: r.Message, Hint: r.Hint}
	if r.Path != "" {
		e.Problems = []api.Problem{{Path: r.Path, Message: r.Message}}
		e.Message = "refused:"
	}
	return e
}
