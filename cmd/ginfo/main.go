// Command ginfo shows the nodes and their GPUs.
package main

import (
	"context"

	"gbatch/internal/cli"
)

type command struct {
	cli.LongHelp
	cli.Connection
	cli.JSONFlag

	Short    bool     `short:"s" xor:"view" help:"A box with one line per node: free and total workers, GPUs, CPUs and memory."`
	PerNode  bool     `short:"N" xor:"view" help:"One line per node, also for nodes that are alike."`
	GPUs     bool     `name:"gpus" xor:"view" help:"One line per GPU."`
	Reasons  bool     `short:"R" xor:"view" help:"Only nodes that something is wrong with, and what."`
	Format   string   `short:"o" xor:"view" placeholder:"FORMAT" help:"Columns by name, as name,state,gpus,driver,features; or sinfo's format, as '%N %T %E'."`
	Interval int      `short:"i" placeholder:"SECONDS" help:"Show it live, drawn again that often, until Ctrl-C."`
	Watch    bool     `help:"Show it live, as -i 2."`
	Cluster  []int    `short:"p" help:"Only these clusters."`
	Nodes    []string `short:"n" sep:"none" help:"Only these nodes, as gpu[01-04,07]."`
	NoHeader bool     `short:"h" help:"No header line."`
}

func (c *command) Run(ctx context.Context, app *cli.App) error {
	interval, err := cli.Interval(c.Interval, c.Watch)
	if err != nil {
		return err
	}
	return app.Info(ctx, cli.InfoOptions{
		Short: c.Short, PerNode: c.PerNode, GPUs: c.GPUs, NoHeader: c.NoHeader, Clusters: c.Cluster, Nodes: c.Nodes,
		Reasons: c.Reasons, Format: c.Format, Interval: interval,
	})
}

func main() {
	cli.Main(cli.Program{
		Name:  "ginfo",
		About: "Show the nodes and what is free on them, as free/total. Nodes that are alike share a line.",
		Examples: []string{
			"ginfo                # nodes, GPUs, and why a node takes no jobs",
			"ginfo --gpus -p 1    # each GPU of cluster 1, with its job and utilization",
			"ginfo -R             # what is wrong, and where",
			"ginfo -h -o name,gpus,driver   # for scripts; or --json",
			"ginfo --short        # the box",
		},
	}, &command{})
}
