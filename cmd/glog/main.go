// Command glog prints a job's log.
package main

import (
	"gbatch/internal/cli"
	_ "gbatch/internal/cli/alone"
	"gbatch/internal/cli/logs"
)

type command struct {
	cli.Help
	cli.Connection
	logs.Log
}

func main() {
	cli.Main(cli.Program{
		Name:  "glog",
		About: "Print a job's log, byte by byte as its program wrote it.",
		Examples: []string{
			"glog 12                 # all that job 12 has printed",
			"glog -f --tail 20 12    # its last 20 lines, and what comes",
			"glog --since 10m 12     # of the last ten minutes",
			"glog --try 1 12         # what the first try of a job that was tried again wrote",
			"glog -f --all 12        # all nodes of a gang, as 3: text",
			"glog --rank 3 12 | less # the log of the fourth node of a gang",
		},
	}, &command{})
}
