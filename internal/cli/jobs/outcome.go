package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// Outcome is how a job ended, in a line.
func Outcome(d *api.JobDetail) string {
	s := fmt.Sprintf("job %s (%s) %s", ID(&d.Job), d.Name, d.State)
	if d.Reason != "" {
		s += " (" + d.Reason + ")"
	}
	if d.ExitCode != nil && *d.ExitCode != 0 {
		s += " with exit code " + ExitText(*d.ExitCode)
	}
	if lasted := Ran(&d.Job, d.Ended); lasted > 0 {
		s += " after " + string(human.Duration(nil, int64(lasted/time.Second)))
	}
	if d.ReasonText != "" && !strings.Contains(s, d.ReasonText) {
		s += ": " + d.ReasonText
	}
	return s
}

// TryEnd is how a try ended, as the end of a sentence: the first of its ranks that
// failed says it.
func TryEnd(at *api.Attempt) string {
	for _, r := range at.Ranks {
		switch {
		case r.Exit == nil || r.Exit.OK():
		case r.Exit.Message != "":
			return ": " + r.Exit.Message
		case r.Exit.Code != 0:
			return " with exit code " + ExitText(r.Exit.Code)
		default:
			return ": " + string(r.Exit.Reason)
		}
	}
	return ""
}

// ExitText explains the codes that name signals.
func ExitText(code int) string {
	if code > 128 && code < 128+65 {
		return fmt.Sprintf("%d (signal %d)", code, code-128)
	}
	return strconv.Itoa(code)
}

// ExitCode is the exit code of a command that waited for d: 0 if it finished,
// the program's code if the program ended it, 125 for all else.
func ExitCode(d *api.JobDetail) int {
	if d.State == job.Finished {
		return exit.OK
	}
	if d.State != job.Failed || d.ExitCode == nil || *d.ExitCode == 0 {
		return exit.NotProgram
	}
	switch job.Reason(d.Reason) {
	case job.None, job.ExitCode, job.Signal, job.OOM, job.BackoffLimit, job.FailedIndexes:
		return *d.ExitCode
	}
	return exit.NotProgram
}

// Estimate is when a job would start, in a sentence.
func Estimate(v table.View, e *api.Estimate) string {
	in, said := strings.CutPrefix(e.Text, "starts ") // when, in the controller's words
	var text string
	switch {
	case e.Now:
		text = "it would start at once"
	case said && v.Relative && !e.At.IsZero():
		text = "it would start " + in
	case !e.At.IsZero():
		text = "it would start " + string(v.Moment(nil, e.At))
	case e.Text != "":
		return e.Text
	default:
		return "when it would start is not known"
	}
	if len(e.Nodes) > 0 {
		text += " on " + human.Hosts(e.Nodes)
	}
	if e.Text != "" && !said {
		text += ": " + e.Text
	}
	return text
}
