package ctld

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// fail turns an error into an answer: those meant for users as they are, all
// others as "internal error" with the full text in the log.
func (s *Server) fail(err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	if r, ok := errors.AsType[*state.Refusal](err); ok {
		return refused(r)
	}
	var problems job.Problems
	if errors.As(err, &problems) {
		return invalidJob(problems)
	}
	if errors.Is(err, context.Canceled) { // the caller has gone
		return &api.Error{Status: 503, Code: api.CodeUnavailable, Message: "the request was broken off"}
	}
	s.log.Error("request failed", "err", err)
	return &api.Error{Status: 500, Code: api.CodeInternal, Message: "internal error", Hint: "the controller's log has more"}
}

func invalidJob(ps job.Problems) *api.Error {
	e := &api.Error{Status: 422, Code: api.CodeInvalidJob, Message: "the job document has problems:"}
	for _, p := range ps {
		e.Problems = append(e.Problems, api.Problem{Path: p.Path, Message: p.Message, Hint: p.Hint})
	}
	return e
}

var refusalStatus = map[state.Code]int{
	state.NotFound: 404, state.Conflict: 409, state.Denied: 403, state.Unsatisfiable: 422, state.OverLimit: 409,
}

func refused(r *state.Refusal) *api.Error {
	e := &api.Error{Status: refusalStatus[r.Code], Code: string(r.Code), Message: r.Message, Hint: r.Hint}
	if r.Path != "" {
		e.Problems = []api.Problem{{Path: r.Path, Message: r.Message}}
		e.Message = "refused:"
	}
	return e
}

func init() {
	// huma's own errors (a body that is not JSON, a wrong type) in our form.
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		e := &api.Error{Status: status, Code: api.CodeBadRequest, Message: msg}
		if status == http.StatusRequestEntityTooLarge {
			e.Code = api.CodeTooLarge
		}
		for _, err := range errs {
			var d *huma.ErrorDetail
			if errors.As(err, &d) {
				e.Problems = append(e.Problems, api.Problem{Path: d.Location, Message: d.Message})
			} else if err != nil {
				e.Problems = append(e.Problems, api.Problem{Message: err.Error()})
			}
		}
		return e
	}
}

func writeError(w http.ResponseWriter, e *api.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(e) // the client has gone: nobody to tell
}
