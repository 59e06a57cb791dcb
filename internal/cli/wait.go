package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// WaitFor waits until all these jobs, and those that continue them when they are
// halted, have ended and prints how each did. It
// fails unless all have finished well.
func (a *App) WaitFor(ctx context.Context, ids []string) error {
	bad := 0
	var failed error
	for _, id := range ids {
		d, err := a.watchEnd(ctx, id)
		switch {
		case client.IsCode(err, api.CodeNotFound) && len(ids) > 1:
			a.say("%s: %v", id, err)
			failed = &exitError{code: ExitNotFound}
			continue
		case err != nil:
			return err
		}
		if err := a.printEnd(d); err != nil {
			return err
		}
		if d.State != job.Finished {
			bad++
		}
	}
	if failed == nil && bad > 0 {
		failed = &exitError{code: ExitFailure}
	}
	return failed
}

func (a *App) printEnd(d *api.JobDetail) error {
	switch {
	case a.Output.JSON:
		return a.writeJSON(struct {
			Job *api.JobDetail `json:"job"`
		}{d})
	case a.Output.IDs:
		_, err := fmt.Fprintln(a.Out, jobID(&d.Job))
		return err
	}
	_, err := fmt.Fprintln(a.Out, cleanLines(outcome(d)))
	return err
}

// outcome is how a job ended, in a line.
func outcome(d *api.JobDetail) string {
	s := fmt.Sprintf("job %s (%s) %s", jobID(&d.Job), d.Name, d.State)
	if d.Reason != "" {
		s += " (" + d.Reason + ")"
	}
	if d.ExitCode != nil && *d.ExitCode != 0 {
		s += " with exit code " + exitText(*d.ExitCode)
	}
	if lasted := ran(&d.Job, d.Ended); lasted > 0 {
		s += " after " + string(slurmDuration(nil, int64(lasted/time.Second)))
	}
	if d.ReasonText != "" && !strings.Contains(s, d.ReasonText) {
		s += ": " + d.ReasonText
	}
	return s
}

// waitJob waits for a job's end, in silence but for broken connections, and
// ends with the job's exit code.
func (a *App) waitJob(ctx context.Context, id string) error {
	d, err := a.watchEnd(ctx, id)
	if err != nil {
		return a.interrupted(err, id, d)
	}
	return a.jobEnd(d)
}

// interrupted turns the user's Ctrl-C into what it means: the job goes on.
func (a *App) interrupted(err error, id string, d *api.JobDetail) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	a.clearStatus()
	state := "goes on"
	if d != nil {
		state = "is " + strings.TrimSpace(string(d.State)) + " and goes on"
	}
	a.say("job %s %s. See it again: glog -f %s. End it: gcancel %s", id, state, id, id)
	return &exitError{code: ExitInterrupted}
}
