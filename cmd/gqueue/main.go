// Command gqueue shows the queue and single jobs.
package main

import (
	"gbatch/internal/cli"
	_ "gbatch/internal/cli/alone"
	"gbatch/internal/cli/queue"
	"gbatch/internal/cli/save"
)

type command struct {
	cli.LongHelp
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag

	List    queue.List    `cmd:"" default:"withargs" help:"List jobs (the default). The other commands: gqueue show, explain, events, save, secret, update and wait ID; see their --help."`
	Show    queue.Show    `cmd:"" aliases:"status" help:"Everything about a job, with its timeline."`
	Explain queue.Explain `cmd:"" help:"Why a job waits, and what would help."`
	Secret  queue.Secret  `cmd:"" help:"Give a job that waits or runs new values of its secrets."`
	Events  queue.Events  `cmd:"" help:"What happened to a job, line by line; without one, all that happens."`
	Wait    queue.Wait    `cmd:"" help:"Wait until jobs have ended."`
	Save    save.Save     `cmd:"" help:"Push what a running job has written over its image, as a new image."`
	Update  queue.Update  `cmd:"" help:"Give a running job other CPU and memory, or a waiting one another priority."`
}

func main() {
	cli.Main(cli.Program{
		Name:  "gqueue",
		About: "Show the queue, or everything about one job.",
		Sort:  queue.Sortable(),
		Examples: []string{
			"gqueue                             # jobs that wait or run",
			"gqueue --me -t all                 # all of yours, ended ones too",
			"gqueue -h -o '%i|%j|%T' -A vision  # for scripts; or --json",
			"gqueue show 12                     # one job: spec, allocation, tries, timeline",
			"gqueue update 12 --cpus 8 --mem 64G # more, or less, for a job that runs",
			"gqueue --priority -S -priority     # who is next, and by which points",
			"gqueue --watch -A vision           # live",
			"gqueue explain 13                  # why does it wait?",
			"gqueue save 12 reg.example.org/me/env:2 # its container as an image",
		},
	}, &command{})
}
