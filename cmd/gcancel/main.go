// Command gcancel ends jobs, and steers those that shall not end.
package main

import (
	"context"

	"gbatch/internal/cli"
)

type command struct {
	cli.Help
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag

	IDs     []string `arg:"" optional:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID."`
	Hold    bool     `xor:"action" help:"Do not cancel but put on hold."`
	Release bool     `xor:"action" help:"Do not cancel but release from hold."`
	Pause   bool     `xor:"action" help:"Do not cancel but make a running job stand still; it keeps its resources."`
	Resume  bool     `xor:"action" help:"Do not cancel but let a paused job go on."`
	Requeue bool     `xor:"action" help:"End the present try only; the job waits again and begins anew."`
	Halt    bool     `xor:"action" help:"Let a restartable job save its work and end; a new job continues it."`
	Signal  string   `short:"s" xor:"action" placeholder:"NAME" help:"Only send the programs a signal, as USR1; they go on."`
	User    []string `short:"u" help:"All jobs of these users that have not ended."`
	Me      bool     `help:"All jobs of yours that have not ended."`
	Project []string `short:"A" help:"Only jobs of these projects."`
	States  []string `short:"t" help:"Only jobs in these states, as QUEUED."`
	Name    []string `short:"n" help:"Only jobs with these names."`
	Cluster []int    `short:"p" help:"Only jobs of these clusters."`
	Yes     bool     `short:"y" help:"Do not ask before touching more than 20 jobs."`
}

func (c *command) Run(ctx context.Context, app *cli.App) error {
	action := "cancel"
	switch {
	case c.Hold:
		action = "hold"
	case c.Release:
		action = "release"
	case c.Pause:
		action = "pause"
	case c.Resume:
		action = "resume"
	case c.Requeue:
		action = "requeue"
	case c.Halt:
		action = "halt"
	case c.Signal != "":
		action = "signal"
	}
	return app.Cancel(ctx, cli.CancelOptions{
		IDs: c.IDs, Action: action, Me: c.Me, Users: c.User, Projects: c.Project,
		States: c.States, Names: c.Name, Clusters: c.Cluster, Yes: c.Yes, Signal: c.Signal,
	})
}

func main() {
	cli.Main(cli.Program{
		Name:  "gcancel",
		About: "Cancel jobs, or hold, release, pause, resume, requeue, halt or signal them. Says what it did to each.",
		Examples: []string{
			"gcancel 12 13              # cancel two jobs",
			"gcancel --me -t QUEUED     # cancel all of yours that wait",
			"gcancel --halt 15          # let 15 save its work; a new job goes on with it later",
			"gcancel --hold 14          # keep 14 from starting; --release lets it go again",
		},
	}, &command{})
}
