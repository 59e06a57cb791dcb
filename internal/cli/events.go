package cli

import (
	"context"
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// Events prints the timelines of jobs.
func (a *App) Events(ctx context.Context, ids []string) error {
	return a.each(ids, func(id string) error {
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		if err != nil {
			return err
		}
		if a.Output.JSON {
			if d.Events == nil {
				d.Events = []api.Event{}
			}
			return a.writeJSON(struct {
				Number job.Number  `json:"number"`
				State  job.State   `json:"state"`
				Reason string      `json:"reason,omitempty"`
				Class  job.Class   `json:"class,omitempty"`
				Events []api.Event `json:"events"`
			}{d.Number, d.State, d.Reason, d.Class, d.Events})
		}
		if _, err := fmt.Fprintf(a.Out, "job %s (%s) %s\n", jobID(&d.Job), clean(d.Name), clean(stateText(d, ""))); err != nil {
			return err
		}
		return a.timeline(a.Out, d.Events)
	})
}
