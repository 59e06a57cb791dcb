package cli

import (
	"context"

	"gbatch/internal/api"
)

// Reprioritize changes what is added to a waiting job's priority.
// Other CPU and memory are for jobs that run, and cannot be changed with it.
func (a *App) Reprioritize(ctx context.Context, id string, priority int, resize bool) error {
	if resize {
		return usageError("--priority is for jobs that wait, --cpus and --mem are for jobs that run: give one of them")
	}
	resp, err := a.Client.Action(ctx, "update", &api.ActionRequest{IDs: []string{id}, Priority: priority})
	if err != nil {
		return err
	}
	return a.printActions(resp, CancelOptions{Action: "update"})
}
