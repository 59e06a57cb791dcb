package follow

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/watch"
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

// WatchEnd waits for the end of a job, and when it was halted for the end of
// the job that continues it.
func WatchEnd(ctx context.Context, a *cli.App, id string) (*api.JobDetail, error) {
	for {
		d, err := watch.Job(ctx, a, id, func(*api.JobDetail) bool { return false })
		if err != nil {
			return d, err
		}
		next, ok := successor(a, d)
		if !ok {
			return d, nil
		}
		id = next
	}
}

// successor is the job that continues one that was halted, and whether there is
// one.
func successor(a *cli.App, d *api.JobDetail) (string, bool) {
	if d.Successor == 0 {
		return "", false
	}
	a.Say("job %d was halted (%s); job %d continues it", d.Number, human.Clean(d.ReasonText), d.Successor)
	return strconv.FormatUint(uint64(d.Successor), 10), true
}
