package route

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gbatch/internal/api"
	"gbatch/internal/ctld/notice"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// failures is what the log says of requests that went wrong. Each route has its
// own, so that one that is asked often does not hide others.
func failures(log *slog.Logger) *notice.Notice {
	return &notice.Notice{Log: log, Level: slog.LevelError, Text: "request failed"}
}

// said turns an error into an answer: those meant for users as they are, all
// others as "internal error" with the full text in the log, seldom. Event says that
// it was an event that was refused.
func (r *Route) said(err error) (e *api.Error, event bool) {
	if refusal, ok := errors.AsType[*state.Refusal](err); ok {
		return wire.Refused(refusal), true
	}
	return r.saidError(err), false
}

func (r *Route) saidError(err error) *api.Error {
	var e *api.Error
	if errors.As(err, &e) {
		if e.Code == api.CodeInternal {
			r.failures.Happened("route", r.Pattern, "error", err)
		}
		return e
	}
	var problems job.Problems
	if errors.As(err, &problems) {
		e = api.Errorf(api.CodeInvalidJob, "the job document has problems:")
		for _, p := range problems {
			e.Problems = append(e.Problems, api.Problem{Path: p.Path, Message: p.Message, Hint: p.Hint})
		}
		return e
	}
	if errors.Is(err, context.Canceled) { // the caller has gone
		return api.Errorf(api.CodeUnavailable, "the request was broken off")
	}
	r.failures.Happened("route", r.Pattern, "error", err)
	return api.Errorf(api.CodeInternal, "internal error").WithHint("the controller's log has more")
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

// writeError answers with an error.
func writeError(w http.ResponseWriter, e *api.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(e) // the client has gone: nobody to tell
}
