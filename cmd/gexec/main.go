// Command gexec runs commands in running jobs and forwards ports to them.
package main

import (
	"context"

	"gbatch/internal/cli"
)

type command struct {
	cli.Help
	cli.Connection

	ID      string   `arg:"" name:"id" help:"Number, UUID or the beginning of a UUID."`
	Command []string `arg:"" optional:"" passthrough:"" help:"Command and its arguments, after --. None: a shell."`
	Attach  bool     `short:"a" help:"Take the terminal of the job's own program (see gsubmit --interactive). Enter ~ . leaves it."`
	TTY     bool     `short:"t" xor:"tty" help:"Give the command a terminal. A shell gets one by itself when you are at one."`
	NoTTY   bool     `short:"T" name:"no-tty" xor:"tty" help:"Give the command pipes, never a terminal."`
	Rank    int      `help:"Rank of a job on several nodes, from 0."`
	User    string   `short:"u" help:"Run as this user of the image (else the job's)."`
	Workdir string   `short:"w" placeholder:"DIR" help:"Run in this directory (else the job's)."`
	Env     []string `short:"e" sep:"none" placeholder:"NAME=VALUE" help:"Set a variable over the job's; NAME alone takes yours. May be repeated."`
	Forward []string `sep:"none" placeholder:"[ADDRESS:]PORT:JOBPORT" help:"Listen on PORT here and connect to JOBPORT in the job. May be repeated."`
}

func (c *command) Run(ctx context.Context, app *cli.App) error {
	return app.Enter(ctx, c.ID, c.Forward, cli.ExecOptions{
		Args: c.Command, Rank: c.Rank, User: c.User, WorkDir: c.Workdir, Env: c.Env, Terminal: c.TTY, Pipes: c.NoTTY, Attach: c.Attach,
	})
}

func main() {
	cli.Main(cli.Program{
		Name:  "gexec",
		About: "Run a command or a shell in a running job, or forward ports to it. It ends with gexec; the job goes on. With --attach, take the terminal of the job itself.",
		Examples: []string{
			"gexec 12                                 # a shell in job 12",
			"gexec 12 -- nvidia-smi                   # one command, with its exit code",
			"tar c src | gexec 12 -- tar x -C /tmp    # data in, and out the same way",
			"gexec --rank 3 -t 12 -- top              # a terminal on the fourth node of a gang",
			"gexec --attach 12                        # the terminal of the job itself",
			"gexec --forward 8888:8888 12             # http://localhost:8888 is the job's",
		},
		Failure: 125,
		Codes: "the command's own, 128 + N if signal N ended it; 125 gexec failed, 126 the command\n" +
			"cannot be executed, 127 it is not in the image, 130 interrupted.",
	}, &command{})
}
