package follow

import (
	"context"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/watch"
)

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
