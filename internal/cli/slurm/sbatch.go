package slurm

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/allocation"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/follow"
	"gbatch/internal/client"
	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/slurm"
)

const sbatchHelp = "sbatch [OPTIONS] [SCRIPT [ARGUMENT...]]  submits a batch script to gbatch; see docs/slurm.md. The job runs in a container:\n" +
	"name its image by --image, --container-image or " + allocation.ImageVariable + "."

// sbatch submits a batch script, or a command.
func sbatch(ctx context.Context, a *cli.App, args []string) error {
	c := slurm.Split(args,
		map[string]bool{"--parsable": false, "--wrap": true, "--hold": false, "--wait": false, "--test-only": false, "--quiet": false, "--help": false},
		map[string]string{"-H": "--hold", "-W": "--wait", "-Q": "--quiet", "-h": "--help"})
	has := func(name string) bool { _, ok := c.Own[name]; return ok }
	if has("--help") {
		fmt.Fprintln(a.Out, sbatchHelp)
		return nil
	}
	name, jobName, script, err := batchScript(a, c, has("--wrap"))
	if err != nil {
		return err
	}
	file := c.Script
	if has("--wrap") || file == "-" {
		file = ""
	}
	own, image, err := ownJob(ctx, a)
	if err != nil {
		return err
	}
	dir, host := a.Place()
	sub, err := slurm.Parse([]byte(script), slurm.Options{
		Line: c.Options, DefaultImage: image, Args: c.Args, Own: c.Own, PassesOn: own != nil,
		FileName: jobName, File: file, Directory: dir, Host: host, Reservation: a.Reservation(ctx), Widest: a.Widest(ctx),
		Env: a.Env, Now: job.Instant(a.Now().UnixMilli()), Zone: time.Local,
	})
	if err != nil {
		return &exit.Error{Code: exit.Failure, Err: cli.FileError(name, err)}
	}
	if err := takeAfter(a, own, &sub); err != nil {
		return err
	}
	doc, err := sub.Document()
	if err != nil {
		return err
	}
	r, err := a.Client.Submit(ctx, &api.SubmitRequest{Job: doc, Hold: has("--hold"), DryRun: has("--test-only")}, "")
	if err != nil {
		return &exit.Error{Code: exit.Failure, Err: cli.FileError(name, err)}
	}
	if !has("--quiet") && !has("--parsable") {
		for _, n := range sub.Notes {
			a.Say("sbatch: note: %s: %s", n.Path, n.Message)
		}
		for _, n := range r.Notes {
			a.Say("sbatch: note: %s: %s", n.Path, n.Message)
		}
	}
	switch {
	case has("--test-only"):
		a.Say("sbatch: the job would be accepted: %s", r.Estimate.Text)
		return nil
	case has("--parsable") && has("--clusters"):
		fmt.Fprintf(a.Out, "%d;%s\n", r.Number, clusterName)
	case has("--parsable"):
		fmt.Fprintln(a.Out, r.Number)
	case has("--quiet"):
	case has("--clusters"):
		fmt.Fprintf(a.Out, "Submitted batch job %d on cluster %s\n", r.Number, clusterName)
	default:
		fmt.Fprintf(a.Out, "Submitted batch job %d\n", r.Number)
	}
	if !has("--wait") {
		return nil
	}
	return waitFor(ctx, a, fmt.Sprint(r.Number))
}

// waitFor ends as Slurm's sbatch does that waited: with the program's exit code,
// of an array with the highest, and with 1 for all other ends that are not good. A
// script that ends well when it is told of its time limit is well.
func waitFor(ctx context.Context, a *cli.App, id string) error {
	d, err := follow.WatchEnd(ctx, a, id)
	if err != nil {
		return follow.Interrupted(a, err, id, d)
	}
	code := waitedCode(&d.Job)
	if d.Tasks != nil {
		for task, err := range a.Client.Past(ctx, client.HistoryFilter{Array: d.Number}) {
			if err != nil {
				return err
			}
			code = max(code, waitedCode(&task.Job))
		}
	}
	if code == 0 {
		return nil
	}
	return &exit.Error{Code: code}
}

func waitedCode(j *api.Job) int {
	trapped := j.Reason == string(job.MaxRuntime) && j.ExitCode != nil && *j.ExitCode == 0
	if j.State == job.Finished || trapped {
		return 0
	}
	code, _ := exitPair(j)
	return max(code, 1)
}

// batchScript is the script to submit: that of --wrap, a file, or standard input.
// The job is named after it unless it says otherwise.
func batchScript(a *cli.App, c slurm.Command, wrap bool) (name, jobName, script string, err error) {
	switch {
	case c.Script == ":":
		return "", "", "", exit.Usagef("%s", slurm.PartsRefused)
	case wrap && c.Script != "":
		return "", "", "", exit.Usagef("a script and --wrap were given: give one of them")
	case wrap:
		return "sbatch", "wrap", "#!/bin/sh\n" + c.Own["--wrap"] + "\n", nil
	case c.Script == "" || c.Script == "-":
		b, err := io.ReadAll(io.LimitReader(a.In, document.MaxBytes+1))
		return "standard input", "", string(b), err
	}
	b, err := os.ReadFile(c.Script)
	if err != nil {
		return "", "", "", exit.Usagef("read batch script: %w", err)
	}
	return c.Script, filepath.Base(c.Script), string(b), nil
}
