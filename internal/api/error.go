package api

import (
	"fmt"
	"strings"
)

// Error is what every request that fails is answered with.
type Error struct {
	Status   int       `json:"status"` // the HTTP status again
	Code     string    `json:"code"`
	Message  string    `json:"message"`
	Hint     string    `json:"hint,omitempty"` // what to do next
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one fault of a job document.
type Problem struct {
	Path    string `json:"path"` // JSON path, as request.resources.gpus
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// The error codes.
const (
	CodeInvalidJob    = "invalid_job"   // Problems says what
	CodeUnsatisfiable = "unsatisfiable" // no node can ever hold it
	CodeBadRequest    = "bad_request"   // the request makes no sense; the status is 422 where a value is of the wrong kind
	CodeUnauthorized  = "unauthorized"  // who are you
	CodeDenied        = "denied"        // not yours
	CodeNotFound      = "not_found"
	CodeConflict      = "conflict"
	CodeOverLimit     = "over_limit" // the queue is full, or what a user, project or QOS may have
	CodeTooLarge      = "too_large"
	CodeTooMany       = "too_many"     // of connections or requests that are open, or in a second; try again later
	CodeUnavailable   = "unavailable"  // try again later
	CodeStorageFull   = "storage_full" // nothing was recorded
	CodeElsewhere     = "elsewhere"    // another controller leads: nothing was done here; ask the next one
	CodeInternal      = "internal"     // the controller's log has more
)

// statuses is the HTTP status of each code, wherever it is given.
var statuses = map[string]int{
	CodeInvalidJob: 422, CodeUnsatisfiable: 422, CodeBadRequest: 400, CodeUnauthorized: 401, CodeDenied: 403, CodeNotFound: 404,
	CodeConflict: 409, CodeOverLimit: 409, CodeTooLarge: 413, CodeTooMany: 429, CodeUnavailable: 503, CodeStorageFull: 507, CodeElsewhere: 421, CodeInternal: 500,
}

// Errorf is an error with the status of its code.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Status: statuses[code], Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint adds to a new error what to do next.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

// WithProblems adds to a new error what is wrong in the document.
func (e *Error) WithProblems(p ...Problem) *Error {
	e.Problems = append(e.Problems, p...)
	return e
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  %s: %s", p.Path, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " (%s)", p.Hint)
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\n%s", e.Hint)
	}
	return b.String()
}

// GetStatus makes Error usable as the HTTP layer's error.
func (e *Error) GetStatus() int { return e.Status }
