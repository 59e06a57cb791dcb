// Command glog prints a job's log.
package main

import (
	"context"

	"gbatch/internal/cli"
)

type command struct {
	cli.Help
	cli.Connection

	ID     string `arg:"" name:"id" help:"Number, UUID or the beginning of a UUID."`
	Follow bool   `short:"f" help:"Go on until the job has ended."`
	Since  string `placeholder:"TIME" help:"Only what was written then or later: 2026-03-01T18:00, 10m or 2h ago, today."`
	Tail   int64  `short:"n" placeholder:"LINES" help:"Begin with the last so many lines."`
	Rank   int    `xor:"rank" help:"Rank of a job on several nodes, from 0."`
	All    bool   `short:"a" xor:"rank" help:"All ranks, each line behind the number of its rank."`
}

func (c *command) Run(ctx context.Context, app *cli.App) error {
	return app.Log(ctx, c.ID, cli.LogOptions{Follow: c.Follow, Tail: c.Tail, Rank: c.Rank, All: c.All, Since: c.Since})
}

func main() {
	cli.Main(cli.Program{
		Name:  "glog",
		About: "Print a job's log, byte by byte as its program wrote it.",
		Examples: []string{
			"glog 12                 # all that job 12 has printed",
			"glog -f --tail 20 12    # its last 20 lines, and what comes",
			"glog --since 10m 12     # of the last ten minutes",
			"glog -f --all 12        # all nodes of a gang, as 3: text",
			"glog --rank 3 12 | less # the log of the fourth node of a gang",
		},
	}, &command{})
}
