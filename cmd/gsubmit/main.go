// Command gsubmit submits a job file, or a command in an image.
package main

import (
	"context"
	"os"

	"gbatch/internal/cli"
)

type command struct {
	cli.Help
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag

	File   string `arg:"" optional:"" default:"-" help:"Job file of any known format; \"-\" or nothing reads standard input."`
	Format string `placeholder:"NAME" help:"The file's format, when it shall not be detected (gpulab-v2, ...)."`
	submission
	cli.JobFlags
}

// submission is what the commands that submit have in common.
type submission struct {
	Project        string `short:"A" help:"Project that is billed, instead of the file's."`
	Hold           bool   `short:"H" help:"Queue the job on hold."`
	Dependency     string `short:"d" xor:"dep" sep:"none" placeholder:"WHAT" help:"Wait for other jobs, instead of for what the file says: afterok:12:13,after:14+5 (all), afterok:12?afterany:13 (one of them), singleton."`
	DryRun         bool   `xor:"what" help:"Check everything, show the effective job and when it would start; submit nothing."`
	Convert        bool   `xor:"what,dep" help:"Print the job in the native format; submit nothing."`
	Wait           bool   `xor:"then" help:"Wait for the job's end and exit with its code (128+signal; 125 if it was not the program that failed)."`
	Follow         bool   `short:"f" xor:"then" help:"Like --wait, and show the job's state and then its log."`
	Interactive    bool   `short:"i" xor:"then" help:"Start at once or fail, and give the program your terminal. Enter ~ . leaves it; gexec --attach comes back."`
	IdempotencyKey string `placeholder:"KEY" help:"Submitting again with the same key gives the same job."`

	Secret []string `sep:"none" placeholder:"NAME[=VALUE|@FILE]" help:"Value of a secret; NAME alone takes it from the environment. May be repeated."`
}

func (c *command) Run(ctx context.Context, app *cli.App) error {
	o := c.options()
	o.File, o.Format, o.Overrides = c.File, c.Format, c.Overrides()
	return app.Submit(ctx, o)
}

func (s submission) options() cli.SubmitOptions {
	return cli.SubmitOptions{
		Project: s.Project, Hold: s.Hold, DryRun: s.DryRun,
		Convert: s.Convert, Wait: s.Wait, Follow: s.Follow, Interactive: s.Interactive, Key: s.IdempotencyKey,
		Dependency: s.Dependency, Secrets: s.Secret,
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "nvct" {
		cli.Main(nvctProgram, &nvctCommand{})
	}
	cli.Main(cli.Program{
		Name:  "gsubmit",
		About: "Submit a job file, a batch script, or with --image a command behind --. Prints the job's number, alone when standard output is no terminal.",
		Retry: true,
		Examples: []string{
			"gsubmit train.json                 # queue the job that train.json describes",
			"gsubmit --image debian:12 --gpus h100:1 -t 2:00:00 -- nvidia-smi   # a job without a file",
			"gsubmit --image pytorch:2.4 train.sbatch                          # a script written for Slurm",
			"gsubmit nvct create --input-file task.json --max-runtime PT4H     # a task of NVIDIA Cloud Tasks; see gsubmit nvct --help",
			"gsubmit --follow train.json        # and watch it: the queue, its start, its log",
			"gsubmit --interactive shell.json   # and work in it: its terminal is yours",
			"gsubmit --dry-run -A vision a.json # would it be accepted, when and where would it start?",
			"gsubmit --secret HF_TOKEN tune.json # with the token that this shell has",
			"id=$(gsubmit job.json) && gqueue wait $id",
		},
	}, &command{})
}
