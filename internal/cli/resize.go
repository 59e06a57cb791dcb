package cli

import (
	"context"
	"fmt"

	"gbatch/internal/api"
)

// Resize gives a running job other CPU and memory, and waits until its nodes
// have done so or said why not. 0 keeps what it has.
func (a *App) Resize(ctx context.Context, id string, cpus, memGiB int) error {
	if cpus == 0 && memGiB == 0 {
		return usageError("nothing to change: give --cpus, --mem or both")
	}
	resp, err := a.Client.Resize(ctx, id, &api.ResourcesRequest{CPUs: cpus, CPUMemoryGB: memGiB})
	if err != nil {
		return err
	}
	d, err := a.watch(ctx, id, func(d *api.JobDetail) bool { return !resizing(d) })
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(struct {
			Job *api.JobDetail `json:"job"`
		}{d})
	}
	if len(d.Attempts) > 0 {
		for i, r := range d.Attempts[len(d.Attempts)-1].Ranks {
			if r.Resize != nil && r.Resize.Failed != "" {
				return fmt.Errorf("job %d keeps what it has: rank %d on %s: %s", d.Number, i, r.Node, r.Resize.Failed)
			}
		}
	}
	if d.State.Final() {
		return fmt.Errorf("job %d ended meanwhile", d.Number)
	}
	_, err = fmt.Fprintln(a.Out, clean(fmt.Sprintf("job %d %s", d.Number, resp.Message)))
	return err
}

// resizing says that a node was asked and has not answered.
func resizing(d *api.JobDetail) bool {
	if len(d.Attempts) == 0 {
		return false
	}
	for _, r := range d.Attempts[len(d.Attempts)-1].Ranks {
		if r.Resize != nil && r.Resize.Failed == "" {
			return true
		}
	}
	return false
}
