package cli

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
	ExitOK            = 0
	ExitFailure       = 1
	ExitUsage         = 2 // wrong flags, or a job file that is not accepted
	ExitNotFound      = 3
	ExitDenied        = 4
	ExitUnreachable   = 5
	ExitUnsatisfiable = 6   // no node can ever hold the job
	ExitNotProgram    = 125 // the job ended badly, but not by its program
	ExitInterrupted   = 130
)

// exitError is an end with a certain code. A nil err means that all was said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit with %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is the user's mistake on the command line or in a job file.
func usageError(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

// ExitCode is the code that a command ends with after err.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[job.Problems](err); ok {
		return ExitUsage
	}
	if errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	if _, ok := errors.AsType[*client.Unreachable](err); ok {
		return ExitUnreachable
	}
	if e, ok := errors.AsType[*api.Error](err); ok {
		return codeExit(e.Code)
	}
	return ExitFailure
}

func codeExit(code string) int {
	switch code {
	case api.CodeInvalidJob, api.CodeBadRequest, api.CodeTooLarge:
		return ExitUsage
	case api.CodeNotFound:
		return ExitNotFound
	case api.CodeUnauthorized, api.CodeDenied:
		return ExitDenied
	case api.CodeUnavailable:
		return ExitUnreachable
	case api.CodeUnsatisfiable:
		return ExitUnsatisfiable
	}
	return ExitFailure
}

// jobExit is the exit code of a command that waited for d: 0 if it finished,
// the program's code if the program ended it, 125 for all else.
func jobExit(d *api.JobDetail) int {
	if d.State == job.Finished {
		return ExitOK
	}
	if d.State != job.Failed || d.ExitCode == nil || *d.ExitCode == 0 {
		return ExitNotProgram
	}
	switch job.Reason(d.Reason) {
	case job.None, job.ExitCode, job.Signal, job.OOM, job.BackoffLimit, job.FailedIndexes:
		return *d.ExitCode
	}
	return ExitNotProgram
}
