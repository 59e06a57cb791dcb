// Command gacct shows jobs that have ended, what was used, and shares.
package main

import (
	"context"

	"gbatch/internal/cli"
)

type command struct {
	cli.LongHelp
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag

	List   listCommand   `cmd:"" default:"withargs" help:"List jobs that have ended (the default), of the last 7 days. The other commands: gacct usage, shares, eff ID and export; see their --help."`
	Usage  usageCommand  `cmd:"" help:"Report what was used, by project, user, GPU model, cluster, day or month."`
	Shares sharesCommand `cmd:"" help:"Fair share: shares, usage and factors, and budgets."`
	Eff    effCommand    `cmd:"" help:"What a job used of what it asked for, also while it runs, with advice."`
	Export exportCommand `cmd:"" help:"All that is recorded of jobs that ended, as JSON lines; for operators."`
}

type listCommand struct {
	IDs      []string `arg:"" optional:"" name:"id" help:"Only these jobs, in any state: numbers, tasks as 12_7, UUIDs or the beginning of a UUID."`
	User     []string `short:"u" help:"Only jobs of these users."`
	Me       bool     `help:"Only your own jobs."`
	Project  []string `short:"A" help:"Only jobs of these projects."`
	Name     []string `help:"Only jobs with these names."`
	States   []string `short:"s" name:"state" help:"Only jobs that ended so, as FAILED,CANCELLED; or Slurm's CD, F, CA."`
	Reason   []string `help:"Only jobs that ended for these reasons, as OOM,NODE_FAIL."`
	Start    string   `short:"S" placeholder:"TIME" help:"Ended at it or later: 2026-03-01, 2026-03-01T18:00, today, 12h or 7d ago. Default 7d."`
	End      string   `short:"E" placeholder:"TIME" help:"Ended before it."`
	Limit    int      `short:"c" help:"Only the last so many."`
	Format   string   `short:"o" placeholder:"COLUMNS" help:"Names of columns, ours or sacct's, as id,name%20,state,elapsed,billed."`
	NoHeader bool     `short:"n" help:"No header line."`
	CSV      bool     `name:"csv" group:"output" help:"Print comma-separated values."`
}

func (c *listCommand) Run(ctx context.Context, app *cli.App) error {
	return app.Acct(ctx, cli.AcctOptions{
		IDs: c.IDs, Users: c.User, Me: c.Me, Projects: c.Project, Names: c.Name, States: c.States, Reasons: c.Reason,
		Start: c.Start, End: c.End, Limit: c.Limit, Format: c.Format, NoHeader: c.NoHeader, CSV: c.CSV,
	})
}

type usageCommand struct {
	By       []string `default:"project" help:"What to divide it by: project, user, model, cluster, day, month."`
	User     []string `short:"u" help:"Only of these users."`
	Project  []string `short:"A" help:"Only of these projects."`
	Start    string   `short:"S" placeholder:"DAY" help:"The first day (UTC): 2026-03-01, 2026-03, or 7d ago. Default 30d."`
	End      string   `short:"E" placeholder:"DAY" help:"The first day that is not counted."`
	NoHeader bool     `short:"n" help:"No header line."`
	CSV      bool     `name:"csv" group:"output" help:"Print comma-separated values."`
}

func (c *usageCommand) Run(ctx context.Context, app *cli.App) error {
	return app.Usage(ctx, cli.UsageOptions{
		By: c.By, Users: c.User, Projects: c.Project, Start: c.Start, End: c.End, NoHeader: c.NoHeader, CSV: c.CSV,
	})
}

type sharesCommand struct {
	Project  []string `short:"A" help:"Only these projects."`
	NoHeader bool     `short:"n" help:"No header line."`
}

func (c *sharesCommand) Run(ctx context.Context, app *cli.App) error {
	return app.Shares(ctx, c.Project, c.NoHeader)
}

type effCommand struct {
	IDs []string `arg:"" name:"id" help:"Numbers, tasks, UUIDs or the beginning of a UUID."`
}

func (c *effCommand) Run(ctx context.Context, app *cli.App) error { return app.Eff(ctx, c.IDs) }

type exportCommand struct {
	Start string `short:"S" placeholder:"TIME" help:"Ended at it or later. Default: from the first."`
	End   string `short:"E" placeholder:"TIME" help:"Ended before it."`
}

func (c *exportCommand) Run(ctx context.Context, app *cli.App) error {
	return app.Export(ctx, c.Start, c.End)
}

func main() {
	cli.Main(cli.Program{
		Name:  "gacct",
		About: "Show jobs that have ended and what they used, what was used by whom, and shares.",
		Examples: []string{
			"gacct --me                                   # what of yours ended in the last 7 days",
			"gacct -u ann -s FAILED -S 30d                # what failed",
			"gacct -n --csv -o id,state,elapsed,billed 12 # for scripts; or --json",
			"gacct usage --by project,model -S 2026-03    # who used which GPUs, since March began",
			"gacct eff 12                                 # what it could have asked for instead",
			"gacct shares                                 # why others go first",
		},
	}, &command{})
}
