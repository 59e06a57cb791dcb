package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/pki"
)

// Unreachable is a connection to the controller that could not be made, broke
// before the answer was complete, or stayed silent too long. Whether a request
// that was under way took effect is not known.
type Unreachable struct {
	Address string // as the user may write it
	Err     error
}

func (e *Unreachable) Error() string {
	return fmt.Sprintf("controller at %s does not answer: %v; %s", e.Address, e.Err, e.advice())
}

func (e *Unreachable) Unwrap() error { return e.Err }

func (e *Unreachable) advice() string {
	if errors.Is(e.Err, fs.ErrPermission) {
		return "you may not use this socket; ask its owner, or set GBATCH_CONTROLLER to an address that takes tokens"
	}
	if errors.Is(e.Err, pki.ErrPin) {
		return "if the controller was set up anew, use the address that `gadm join-string` prints on its machine; else tell your operator"
	}
	return "is gctld running? try `gctld dev` or set GBATCH_CONTROLLER"
}

// answer is an *api.Error with what only the client needs.
type answer struct {
	err   *api.Error
	after time.Duration // the controller asked to wait that long
}

func (a *answer) Error() string { return a.err.Error() }
func (a *answer) Unwrap() error { return a.err }

// maxErrorBody bounds what is read of an answer that is an error.
const maxErrorBody = 1 << 20

// answerError reads the body of an answer that is not 2xx. Something other
// than a controller may have sent it, so whatever is not api.Error is quoted.
func answerError(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came is enough to tell
	e := &api.Error{}
	if json.Unmarshal(data, e) != nil || e.Message == "" {
		text := strings.ToValidUTF8(strings.TrimSpace(string(data)), "?")
		if len(text) > 200 {
			text = text[:200] + "..."
		}
		e = &api.Error{Message: fmt.Sprintf("controller answered %s: %s", resp.Status, text)}
	}
	e.Status = resp.StatusCode
	e.Code = cmp.Or(e.Code, codeOf(resp.StatusCode))
	if secs, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && secs > 0 {
		return &answer{err: e, after: time.Duration(secs) * time.Second}
	}
	return e
}

func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return api.CodeUnauthorized
	case http.StatusForbidden:
		return api.CodeDenied
	case http.StatusNotFound, http.StatusGone:
		return api.CodeNotFound
	case http.StatusConflict:
		return api.CodeConflict
	case http.StatusRequestEntityTooLarge:
		return api.CodeTooLarge
	case http.StatusTooManyRequests:
		return api.CodeTooMany
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return api.CodeUnavailable
	case http.StatusMisdirectedRequest:
		return api.CodeElsewhere
	case http.StatusInsufficientStorage:
		return api.CodeStorageFull
	}
	if status >= 500 {
		return api.CodeInternal
	}
	return api.CodeBadRequest
}

// IsUnavailable says that the controller cannot answer now but may soon: the
// connection failed, or it said so itself.
func IsUnavailable(err error) bool {
	if _, ok := errors.AsType[*Unreachable](err); ok {
		return true
	}
	e, ok := errors.AsType[*api.Error](err)
	return ok && (e.Code == api.CodeUnavailable || e.Code == api.CodeTooMany || e.Code == api.CodeElsewhere)
}

// IsCode says that err is the controller's answer with this code, as
// api.CodeNotFound.
func IsCode(err error, code string) bool {
	e, ok := errors.AsType[*api.Error](err)
	return ok && e.Code == code
}
