package reason

import (
	"fmt"

	"gbatch/internal/job"
)

// Error is why a rank cannot start or go on. Its text is a sentence for the user.
type Error struct {
	Reason job.Reason
	Text   string
	Err    error // for the log; nil: the text says it all
}

func (e *Error) Error() string { return e.Text }
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a text.
func Errorf(r job.Reason, format string, args ...any) error {
	return &Error{Reason: r, Text: fmt.Sprintf(format, args...)}
}

// Because gives an error whose text is fit for the user its reason.
func Because(r job.Reason, err error) error { return &Error{Reason: r, Text: err.Error(), Err: err} }
