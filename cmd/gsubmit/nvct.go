package main

import (
	"gbatch/internal/cli"
	"gbatch/internal/cli/submit"
)

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
