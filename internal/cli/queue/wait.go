package queue

import (
	"context"
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/follow"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// Wait is gqueue wait.
type Wait struct {
	IDs []string `arg:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID."`
}

// Run waits until all these jobs, and those that continue them when they are
// halted, have ended and prints how each did. It fails unless all have finished
// well.
func (o *Wait) Run(ctx context.Context, a *cli.App) error {
	bad := 0
	var failed error
	for _, id := range o.IDs {
		d, err := follow.WatchEnd(ctx, a, id)
		switch {
		case client.IsCode(err, api.CodeNotFound) && len(o.IDs) > 1:
			a.Say("%s: %v", id, err)
			failed = &exit.Error{Code: exit.NotFound}
			continue
		case err != nil:
			return err
		}
		if err := printEnd(a, d); err != nil {
			return err
		}
		if d.State != job.Finished {
			bad++
		}
	}
	if failed == nil && bad > 0 {
		failed = &exit.Error{Code: exit.Failure}
	}
	return failed
}

func printEnd(a *cli.App, d *api.JobDetail) error {
	if a.Output.JSON || a.Output.IDs {
		return printJob(a, d)
	}
	_, err := fmt.Fprintln(a.Out, human.CleanLines(jobs.Outcome(d)))
	return err
}
