package queue

import (
	"context"
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// Events is gqueue events.
type Events struct {
	IDs     []string `arg:"" optional:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID. None: all that happens from now on."`
	Follow  bool     `short:"f" help:"Go on with what happens, until the jobs have ended or Ctrl-C."`
	User    string   `short:"u" help:"Without jobs: only what happens to those of this user."`
	Me      bool     `help:"Without jobs: only to your own."`
	Project string   `short:"A" help:"Without jobs: only to those of this project."`
}

// Run prints the timelines of jobs, or what happens from now on.
func (o *Events) Run(ctx context.Context, a *cli.App) error {
	if len(o.IDs) == 0 || o.Follow {
		return o.follow(ctx, a)
	}
	return a.Each(o.IDs, func(id string) error {
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		if err != nil {
			return err
		}
		if a.Output.JSON {
			if d.Events == nil {
				d.Events = []api.Event{}
			}
			return a.WriteJSON(struct {
				Number job.Number  `json:"number"`
				State  job.State   `json:"state"`
				Reason string      `json:"reason,omitempty"`
				Class  job.Class   `json:"class,omitempty"`
				Events []api.Event `json:"events"`
			}{d.Number, d.State, d.Reason, d.Class, d.Events})
		}
		if _, err := fmt.Fprintf(a.Out, "job %s (%s) %s\n", jobs.ID(&d.Job), human.Clean(d.Name), human.Clean(stateText(d, ""))); err != nil {
			return err
		}
		return timeline(a, a.Out, d.Events)
	})
}
