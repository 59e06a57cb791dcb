// Command gsubmit submits a job file, or a command in an image.
package main

import (
	"os"

	"gbatch/internal/cli"
	_ "gbatch/internal/cli/alone"
	"gbatch/internal/cli/submit"
)

type command struct {
	cli.Help
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag

	submit.Submit
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "nvct" {
		cli.Main(nvctProgram, &nvctCommand{})
	}
	cli.Main(cli.Program{
		Name:  "gsubmit",
		About: "Submit job files, batch scripts, or with --image a command behind --. Takes the options of sbatch, too. Prints the jobs' numbers, alone when standard output is no terminal.",
		Retry: true,
		Examples: []string{
			"gsubmit train.json                 # queue the job that train.json describes",
			"gsubmit --image debian:12 --gpus h100:1 -t 2:00:00 -- nvidia-smi   # a job without a file",
			"gsubmit --image pytorch:2.4 train.sbatch                          # a script written for Slurm",
			"gsubmit --wrap \"srun hostname\" -n 4 -o out-%j.txt               # with sbatch's options: docs/formats.md lists them",
			"gsubmit nvct create --input-file task.json --max-runtime PT4H     # a task of NVIDIA Cloud Tasks; see gsubmit nvct --help",
			"sweep.py | gsubmit --ndjson         # a job for each line, thousands in a second",
			"gsubmit --follow train.json        # and watch it: the queue, its start, its log",
			"gsubmit --interactive shell.json   # and work in it: its terminal is yours",
			"gsubmit --dry-run -A vision a.json # would it be accepted, when and where would it start?",
			"gsubmit --secret HF_TOKEN tune.json # with the token that this shell has",
			"id=$(gsubmit job.json) && gqueue wait $id",
		},
	}, &command{})
}

// nvctCommand is gsubmit when its first argument is nvct.
type nvctCommand struct {
	cli.Help
	cli.Connection
	cli.JSONFlag
	cli.IDsFlag
	cli.ISOFlag

	Nvct struct {
		Create submit.NVCT `cmd:"" help:"Submit a task from --input-file and flags; flags win."`
	} `cmd:"" help:"Tasks of NVIDIA Cloud Tasks."`
}

var nvctProgram = cli.Program{
	Name:  "gsubmit",
	About: "Submit a task of NVIDIA Cloud Tasks, with the flags of nvcf-cli. Prints the job's number, alone when standard output is no terminal.",
	Retry: true,
	Examples: []string{
		"gsubmit nvct create --input-file task.json                     # as gsubmit task.json",
		"gsubmit nvct create --input-file task.json --max-runtime PT4H  # with another time limit than the file's",
		"gsubmit nvct create --name t --gpu H100 --instance-type GPU.H100_1x --image registry.example.org/train:v3",
	},
}
