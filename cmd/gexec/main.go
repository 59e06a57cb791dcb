// Command gexec runs commands in running jobs and forwards ports to them.
package main

import (
	"gbatch/internal/cli"
	_ "gbatch/internal/cli/alone"
	"gbatch/internal/cli/exec"
)

type command struct {
	cli.Help
	cli.Connection
	exec.Exec
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
			"gexec --ssh-config --install             # then: ssh 12.gbatch, and scp, sftp, rsync",
		},
		Failure: 125,
		Codes: "the command's own, 128 + N if signal N ended it; 125 gexec failed, 126 the command\n" +
			"cannot be executed, 127 it is not in the image, 130 interrupted.",
	}, &command{})
}
