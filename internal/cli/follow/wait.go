package follow

import (
	"context"
	"errors"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
)

// Wait waits for a job's end, in silence but for broken connections, and
// ends with the job's exit code.
func Wait(ctx context.Context, a *cli.App, id string) error {
	d, err := WatchEnd(ctx, a, id)
	if err != nil {
		return Interrupted(a, err, id, d)
	}
	return End(a, d)
}

// Interrupted turns the user's Ctrl-C into what it means: the job goes on.
func Interrupted(a *cli.App, err error, id string, d *api.JobDetail) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	a.ClearStatus()
	state := "goes on"
	if d != nil {
		state = "is " + strings.TrimSpace(string(d.State)) + " and goes on"
	}
	a.Say("job %s %s. See it again: glog -f %s. End it: gcancel %s", id, state, id, id)
	return &exit.Error{Code: exit.Interrupted}
}
