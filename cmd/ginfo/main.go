// Command ginfo shows the nodes and their GPUs.
package main

import (
	"gbatch/internal/cli"
	_ "gbatch/internal/cli/alone"
	"gbatch/internal/cli/info"
)

type command struct {
	cli.LongHelp
	cli.Connection
	cli.JSONFlag
	info.Info
}

func main() {
	cli.Main(cli.Program{
		Name:  "ginfo",
		About: "Show the nodes and what is free on them, as free/total. Nodes that are alike share a line.",
		Examples: []string{
			"ginfo                # nodes, GPUs, and why a node takes no jobs",
			"ginfo --gpus -p 1    # each GPU of cluster 1, with its job and utilization",
			"ginfo gpu07          # since when a node is as it is, and what became of it lately",
			"ginfo -R             # what is wrong, and where",
			"ginfo -h -o name,gpus,driver   # for scripts; or --json",
			"ginfo --short        # the box",
		},
	}, &command{})
}
