// Command gacct shows jobs that have ended, what was used, and shares.
package main

import (
	"gbatch/internal/cli"
	"gbatch/internal/cli/acct"
	_ "gbatch/internal/cli/alone"
)

type command struct {
	cli.LongHelp
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag

	List   acct.List   `cmd:"" default:"withargs" help:"List jobs that have ended (the default), of the last 7 days. The other commands: gacct usage, shares, eff ID and export; see their --help."`
	Usage  acct.Usage  `cmd:"" help:"Report what was used, by project, user, GPU model, cluster, day or month."`
	Shares acct.Shares `cmd:"" help:"Fair share: shares, usage and factors, and budgets."`
	Eff    acct.Eff    `cmd:"" help:"What a job used of what it asked for, also while it runs, with advice."`
	Export acct.Export `cmd:"" help:"All that is recorded of jobs that ended, as JSON lines; for operators."`
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
