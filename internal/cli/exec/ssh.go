package exec

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/ssh"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// sshDir is where the user's key for ssh is, and what ssh is told.
func sshDir() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "gbatch"), err
}

// sshConfig prints what ssh has to be told, or installs it.
func (o *Exec) sshConfig(ctx context.Context, a *cli.App) error {
	dir, err := sshDir()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	conf := ssh.Config{Gexec: program, Flags: a.Reach, Dir: dir}
	if o.ID != "" {
		d, err := a.Client.Job(ctx, o.ID, client.JobOptions{})
		if err != nil {
			return err
		}
		conf.Job = d.ID
	}
	if err := conf.Prepare(); err != nil {
		return fmt.Errorf("prepare ssh: %w", err)
	}
	if !o.Install {
		_, err := io.WriteString(a.Out, conf.Text())
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	own, users, err := conf.Install(home)
	if err != nil {
		return fmt.Errorf("install for ssh: %w", err)
	}
	a.Say("wrote %s, which %s includes: ssh JOB%s reaches your running jobs", own, users, ssh.Domain)
	return nil
}

// sshProxy is what ssh speaks to in place of a machine.
func (o *Exec) sshProxy(ctx context.Context, a *cli.App) error {
	if a.Term.In || a.Term.Out {
		return exit.Usagef("--ssh-proxy is for ssh, not for people: see gexec --ssh-config")
	}
	host, err := ssh.ParseHost(o.ID)
	if err != nil {
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	dir, err := sshDir()
	if err != nil {
		return err
	}
	key, err := ssh.Key(dir)
	if err != nil {
		return err
	}
	if err := mayEnter(ctx, a, host); err != nil {
		return err
	}
	return ssh.Serve(ctx, a, host, key)
}

// mayEnter says at once, in our words, what ssh would tell as a broken connection.
func mayEnter(ctx context.Context, a *cli.App, host ssh.Host) error {
	d, err := a.Client.Job(ctx, host.Job, client.JobOptions{})
	switch {
	case err != nil:
		return err
	case d.Tasks != nil:
		return fmt.Errorf("job %s is an array: name a task, as %s_0%s", d.ID, d.ID, ssh.Domain)
	case d.State.Final():
		return fmt.Errorf("job %s is %s: it can be entered only while it runs", d.ID, d.State)
	case d.State != job.Running:
		return fmt.Errorf("job %s is %s: it can be entered only while it runs; gqueue show %s says why it waits", d.ID, d.State, d.ID)
	}
	return nil
}
