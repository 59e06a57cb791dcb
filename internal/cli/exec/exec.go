// Package exec is gexec: it joins the user with a running job, by a command that
// runs in it, by the terminal of its own program, or by its ports. What runs in
// the job for the user ends with gexec; the job goes on.
package exec

import (
	"context"
	"os"
	"strings"
	"syscall"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/attach"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/ssh"
	"gbatch/internal/client"
)

// Exec is gexec and its flags.
type Exec struct {
	ID        string   `arg:"" optional:"" name:"id" help:"Number, UUID or the beginning of a UUID; 12.0 is where step 0 of job 12 runs."`
	Args      []string `arg:"" optional:"" name:"command" passthrough:"" help:"Command and its arguments, after --. None: a shell."`
	Attach    bool     `short:"a" help:"Take the terminal of the job's own program (see gsubmit --interactive). Enter ~ . leaves it."`
	Terminal  bool     `short:"t" name:"tty" xor:"tty" help:"Give the command a terminal. A shell gets one by itself when you are at one."`
	Pipes     bool     `short:"T" name:"no-tty" xor:"tty" help:"Give the command pipes, never a terminal."`
	Rank      int      `help:"Rank of a job on several nodes, from 0."`
	User      string   `short:"u" help:"Run as this user of the image (else the job's)."`
	Container string   `placeholder:"NAME" help:"Run in the container of that name, of before or beside in the job's file (else the job's own)."`
	WorkDir   string   `short:"w" name:"workdir" placeholder:"DIR" help:"Run in this directory (else the job's)."`
	Env       []string `short:"e" sep:"none" placeholder:"NAME=VALUE" help:"Set a variable over the job's; NAME alone takes yours. May be repeated."`
	SSHConfig bool     `name:"ssh-config" help:"Print what ssh, scp, rsync and editors need to reach your jobs as JOB.gbatch, for ~/.ssh/config."`
	Install   bool     `help:"With --ssh-config: install it, by a line in ~/.ssh/config."`
	SSHProxy  bool     `name:"ssh-proxy" hidden:"" help:"Speak SSH for a job's host name, as ProxyCommand."`
	Forward   []string `sep:"none" placeholder:"[ADDRESS:]PORT:JOBPORT" help:"Listen on PORT here and connect to JOBPORT in the job. May be repeated."`

	Patient bool                              `kong:"-"` // it waits while gctld or gnoded is being restarted
	PassOn  map[syscall.Signal]syscall.Signal `kong:"-"` // what tells gexec to end is for the command, as these signals; nil: it ends
}

// Run attaches to the job's own program, forwards ports if there are any to
// forward, or runs a command.
func (o *Exec) Run(ctx context.Context, a *cli.App) error {
	if len(o.Args) > 0 && o.Args[0] == "--" {
		o.Args = o.Args[1:]
	}
	switch {
	case o.Install && !o.SSHConfig:
		return exit.Usagef("--install goes with --ssh-config")
	case (o.SSHConfig || o.SSHProxy) && (!o.plain() || o.Attach || o.Rank != 0):
		return exit.Usagef("--ssh-config takes a job and --install alone: ssh's host names say the rank (12-1%[1]s) and the user (root@12%[1]s)", ssh.Domain)
	case o.SSHConfig:
		return o.sshConfig(ctx, a)
	case isStep(o.ID):
		return o.inStep(ctx, a)
	case o.ID == "":
		return exit.Usagef("which job? gexec ID; your running jobs: gqueue --me --state running")
	case o.SSHProxy:
		return o.sshProxy(ctx, a)
	case o.Rank < 0:
		return exit.Usagef("--rank %d: ranks count from 0", o.Rank)
	case o.Attach && !o.plain():
		return exit.Usagef("--attach joins the program that runs already: of the other flags it takes --rank alone")
	case o.Attach:
		return attach.To(ctx, a, o.ID, o.Rank)
	case len(o.Forward) == 0:
		return o.exec(ctx, a)
	case len(o.Args) > 0:
		return exit.Usagef("--forward takes no command; run another gexec beside it")
	}
	return forwardPorts(ctx, a, o.ID, o.Rank, o.Forward)
}

// plain says that nothing is asked for of a command, and no port.
func (o *Exec) plain() bool {
	return len(o.Forward)+len(o.Args)+len(o.Env) == 0 && o.User+o.Container+o.WorkDir == "" && !o.Terminal && !o.Pipes
}

// restartS is how long a restart of gctld or gnoded may take, in seconds.
const restartS = 20

// exec runs a command in a running job and ends with its exit code.
func (o *Exec) exec(ctx context.Context, a *cli.App) error {
	start, err := o.start(a)
	if err != nil {
		return err
	}
	st, err := a.Client.Enter(ctx, api.StreamExec, o.ID, o.Rank)
	for tries := 0; o.Patient && client.IsUnavailable(err) && tries < restartS && a.Sleep(ctx, time.Second) == nil; tries++ {
		st, err = a.Client.Enter(ctx, api.StreamExec, o.ID, o.Rank)
	}
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Send(ctx, api.JSONFrame(api.FrameStart, start)); err != nil {
		return attach.Broken(ctx, attach.Ended)
	}
	if start.Terminal {
		restore, err := attach.TakeTerminal(ctx, a, st, true)
		if err != nil {
			return err
		}
		defer restore()
	}
	if o.PassOn != nil {
		signals, back := a.TakeSignals()
		defer back()
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		go o.passOn(ctx, stop, st, signals) // ends with the context
	}
	end := func() error { return st.Send(ctx, api.Frame{Type: api.FrameEndInput}) }
	go attach.SendAll(ctx, a, st, end) // ends with the program: reading standard input cannot be broken off
	code, err := attach.Receive(ctx, a, st, attach.Ended)
	if err == nil && code != 0 {
		err = &exit.Error{Code: code}
	}
	return err
}

// endings is how often a command is told to end before gexec itself does.
const endings = 3

// passOn sends signals to the command. It is over when that does not end by them.
func (o *Exec) passOn(ctx context.Context, over func(), st *client.Stream, signals <-chan os.Signal) {
	for range endings {
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			number, _ := s.(syscall.Signal)
			if st.Send(ctx, api.CountFrame(api.FrameSignal, int(o.PassOn[number]))) != nil {
				return // and Receive says that the stream is broken
			}
		}
	}
	select {
	case <-ctx.Done():
	case <-signals:
		over()
	}
}

func (o *Exec) start(a *cli.App) (api.ExecStart, error) {
	start := api.ExecStart{Args: o.Args, WorkDir: o.WorkDir, User: o.User, Container: o.Container}
	shellAtTerminal := len(o.Args) == 0 && a.Term.In && a.Term.Out
	start.Terminal = o.Terminal || shellAtTerminal && !o.Pipes
	if start.Terminal {
		start.Width, start.Height = attach.Size(a)
		if kind, _ := a.Env("TERM"); kind != "" {
			start.Env = append(start.Env, "TERM="+kind)
		}
	}
	for _, kv := range o.Env {
		name, _, given := strings.Cut(kv, "=")
		value, here := a.Env(name)
		switch {
		case name == "":
			return start, exit.Usagef("--env %q has no name: want NAME=VALUE", kv)
		case !given && !here:
			return start, exit.Usagef("--env %s has no value: want %s=VALUE, or a variable that is set here", kv, name)
		case !given:
			kv = name + "=" + value
		}
		start.Env = append(start.Env, kv)
	}
	if f := api.JSONFrame(api.FrameStart, start); len(f.Data) >= api.MaxFrame/2 {
		return start, exit.Usagef("the command and its environment are longer than %d KiB; send it as standard input, as gexec 12 -- sh < script", api.MaxFrame/2>>10)
	}
	return start, nil
}
