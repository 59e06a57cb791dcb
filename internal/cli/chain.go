package cli

import (
	"context"
	"strconv"

	"gbatch/internal/api"
)

// watchEnd waits for the end of a job, and when it was halted for the end of
// the job that continues it.
func (a *App) watchEnd(ctx context.Context, id string) (*api.JobDetail, error) {
	for {
		d, err := a.watch(ctx, id, func(*api.JobDetail) bool { return false })
		if err != nil {
			return d, err
		}
		next, ok := a.successor(d)
		if !ok {
			return d, nil
		}
		id = next
	}
}

// successor is the job that continues one that was halted, and whether there is
// one.
func (a *App) successor(d *api.JobDetail) (string, bool) {
	if d.Successor == 0 {
		return "", false
	}
	a.say("job %d was halted (%s); job %d continues it", d.Number, clean(d.ReasonText), d.Successor)
	return strconv.FormatUint(uint64(d.Successor), 10), true
}
