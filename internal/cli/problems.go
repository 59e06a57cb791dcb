package cli

import (
	"errors"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// FileError puts the file's name in front of each problem of a job.
func FileError(name string, err error) error {
	var lines []string
	if ps, ok := errors.AsType[job.Problems](err); ok {
		for _, p := range ps {
			lines = append(lines, p.String())
		}
	} else if e, ok := errors.AsType[*api.Error](err); ok && e.Code == api.CodeInvalidJob {
		for _, p := range e.Problems {
			lines = append(lines, job.Problem{Path: p.Path, Message: p.Message, Hint: p.Hint}.String())
		}
	}
	if len(lines) == 0 {
		return err
	}
	return &problems{text: name + ": " + strings.Join(lines, "\n"+name+": "), err: err}
}

// problems lists problems, one per line, each ready to print.
type problems struct {
	text string
	err  error
}

func (e *problems) Error() string { return e.text }
func (e *problems) Unwrap() error { return e.err }
