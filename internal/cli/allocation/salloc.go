package allocation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job/importer/slurm"
)

// Salloc gets nodes, and runs a command or a shell on this machine that starts
// tasks there by srun. The nodes are given back when that ends.
func Salloc(ctx context.Context, a *cli.App, args []string) error {
	c := slurm.Split(args,
		map[string]bool{"--no-shell": false, "--quiet": false, "--verbose": false, "--bell": false, "--no-bell": false, "--help": false, "--kill-command": false},
		map[string]string{"-Q": "--quiet", "-v": "--verbose", "-h": "--help", "-K": "--kill-command"})
	has := func(name string) bool { _, ok := c.Own[name]; return ok }
	switch {
	case has("--help"):
		fmt.Fprintln(a.Out, "salloc [OPTIONS] [COMMAND [ARGUMENT...]]  gets nodes, and runs a command or a shell here that starts tasks on them by srun; see docs/slurm.md")
		return nil
	case c.Script == ":":
		return exit.Usagef("%s", slurm.PartsRefused)
	case has("--no-shell") && c.Script != "":
		return exit.Usagef("--no-shell runs no command")
	}
	var revoked syscall.Signal
	if text, ok := c.Own["--kill-command"]; ok {
		if revoked = signalOf(cmp.Or(text, "TERM")); revoked == 0 {
			return exit.Usagef("--kill-command=%s: want a signal by name or number, as -KINT; without one it is TERM", text)
		}
	}
	if id, ok := a.Env("SLURM_JOB_ID"); ok {
		a.Say("salloc: note: this is the shell of job %s already", id)
	}
	l, err := allocate(ctx, a, wanted{program: "salloc", variables: "SALLOC_", line: c.Options})
	if err != nil {
		return err
	}
	l.quiet = has("--quiet")
	l.say("Pending job allocation %s", l.id)
	if err := l.await(ctx); err != nil {
		return err
	}
	if has("--no-shell") { // nobody holds it: it ends at its time limit, or by scancel
		l.say("Granted job allocation %s", l.id)
		return nil
	}
	if err := l.hold(ctx); err != nil {
		return err
	}
	l.say("Granted job allocation %s", l.id)
	code, err := l.shell(ctx, append([]string{c.Script}, c.Args...), revoked)
	l.say("Relinquishing job allocation %s", l.id)
	l.end(ctx, code)
	if err != nil {
		return err
	}
	return exitWith(code)
}

// signalOf reads a signal by its name, with SIG or without, or by its number.
func signalOf(text string) syscall.Signal {
	if n, err := strconv.Atoi(text); err == nil {
		if unix.SignalName(syscall.Signal(n)) == "" {
			return 0
		}
		return syscall.Signal(n)
	}
	return unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(text), "SIG"))
}

// shell runs a command on this machine, or the user's shell. It gets a signal, if
// that is not 0, when the allocation ends before it.
func (l *allocation) shell(ctx context.Context, argv []string, revoked syscall.Signal) (code int, err error) {
	if argv[0] == "" {
		argv = []string{"/bin/sh"}
		if sh, ok := l.app.Env("SHELL"); ok && sh != "" {
			argv[0] = sh
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.app.In, l.app.Out, l.app.Err
	cmd.Env = append(l.app.Environ(), l.variables()...)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("unable to exec command %q: %w", argv[0], err)
	}
	// What is typed at the terminal is for the command. Ignored only now: it would
	// have that from here.
	signal.Ignore(os.Interrupt, syscall.SIGQUIT)
	defer signal.Reset(os.Interrupt, syscall.SIGQUIT)
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGHUP) })
	defer stop()
	over, watched := make(chan struct{}), make(chan struct{})
	go func() { // ends with the command, below
		defer close(watched)
		select {
		case <-l.done:
			if revoked != 0 {
				_ = cmd.Process.Signal(revoked)
			}
		case <-over:
		}
	}()
	err = cmd.Wait()
	close(over)
	<-watched
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		if s, ok := ended.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return 128 + int(s.Signal()), nil
		}
		return ended.ExitCode(), nil
	}
	return 0, err
}

// ofRank are variables of the job's first container that mean nothing here.
var ofRank = []string{"SLURM_LOCALID", "SLURM_NODEID", "SLURM_PROCID", "SLURM_GTIDS", "SLURM_TASK_PID", "SLURMD_NODENAME", "SLURM_CPUS_ON_NODE", "SLURM_GPUS_ON_NODE", "SLURM_TOPOLOGY_ADDR",
	"SLURM_TOPOLOGY_ADDR_PATTERN", "SLURM_PRIO_PROCESS"}

// variables are Slurm's for the command.
func (l *allocation) variables() (env []string) {
	for _, kv := range l.env {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "SLURM_") && !slices.Contains(ofRank, name) {
			env = append(env, kv)
		}
	}
	return env
}
