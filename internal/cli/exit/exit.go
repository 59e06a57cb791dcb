// Package exit is how the commands end: the exit codes that scripts rely on,
// the errors that carry one, and which code belongs to what the controller
// answers. It prints nothing and ends no process; cli does.
package exit

import (
	"context"
	"errors"
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// The exit codes of all commands. A command that waits for a job exits with
// the job's own code instead.
const (
	OK            = 0
	Failure       = 1
	Usage         = 2 // wrong flags, or a job file that is not accepted
	NotFound      = 3
	Denied        = 4
	Unreachable   = 5
	unsatisfiable = 6   // no node can ever hold the job
	overLimit     = 7   // the queue is full, or what the user may have
	NotProgram    = 125 // the job ended badly, but not by its program
	Interrupted   = 130
)

// Error is an end with a certain code. A nil Err means that all was said.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit with %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usagef is the user's mistake on the command line or in a job file.
func Usagef(format string, args ...any) error {
	return &Error{Usage, fmt.Errorf(format, args...)}
}

// Code is the code that a command ends with after err.
func Code(err error) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if _, ok := errors.AsType[job.Problems](err); ok {
		return Usage
	}
	if errors.Is(err, context.Canceled) {
		return Interrupted
	}
	if _, ok := errors.AsType[*client.Unreachable](err); ok {
		return Unreachable
	}
	if e, ok := errors.AsType[*api.Error](err); ok {
		return OfCode(e.Code)
	}
	return Failure
}

// Daemon is the code that a daemon ends with where kong would end it with
// code: kong has one of its own, 80, for a wrong command line.
func Daemon(code int) int {
	if code == 80 {
		return Usage
	}
	return code
}

func OfCode(code string) int {
	switch code {
	case api.CodeInvalidJob, api.CodeBadRequest, api.CodeTooLarge:
		return Usage
	case api.CodeNotFound:
		return NotFound
	case api.CodeUnauthorized, api.CodeDenied:
		return Denied
	case api.CodeUnavailable, api.CodeTooMany:
		return Unreachable
	case api.CodeUnsatisfiable:
		return unsatisfiable
	case api.CodeOverLimit:
		return overLimit
	}
	return Failure
}
