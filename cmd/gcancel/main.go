// Command gcancel ends jobs, and steers those that shall not end.
package main

import (
	"gbatch/internal/cli"
	_ "gbatch/internal/cli/alone"
	"gbatch/internal/cli/cancel"
)

type command struct {
	cli.Help
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cancel.Cancel
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
