package allocation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exec"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// Sattach shows what the tasks of a step write: it runs sattach in the job's first
// container, as srun does.
func Sattach(ctx context.Context, a *cli.App, args []string) error {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		fmt.Fprintln(a.Out, "sattach [OPTIONS] JOB.STEP  shows what a step's tasks write from now on, and passes input on to them; see docs/slurm.md")
		return nil
	}
	var of, step string
	if len(args) > 0 {
		of, step, _ = strings.Cut(args[len(args)-1], ".")
	}
	if step == "" {
		return exit.Usagef("need a job step: sattach JOB.STEP, as 12.0")
	}
	d, err := a.Client.Job(ctx, of, client.JobOptions{})
	if err == nil {
		err = hasSteps(d, fmt.Sprintf(", and has no steps: glog -f %s shows its output", of))
	}
	switch {
	case err != nil:
		return err
	case d.State.Final():
		return fmt.Errorf("job %s has ended: glog %s shows its output", of, of)
	}
	pty := slices.Contains(args, "--pty") && a.Term.In
	x := exec.Exec{ID: of, Terminal: pty, Pipes: !pty}
	x.Args = slices.Concat([]string{job.LaunchDir + "/sattach"}, args)
	return x.Run(ctx, a)
}

// hasSteps says that a job can have steps, or why not and what to do instead. What
// others' jobs are is not shown, so nothing is said of that.
func hasSteps(d *api.JobDetail, instead string) error {
	switch {
	case d.Private:
		return fmt.Errorf("job %s is of another project: only who may see it can use its steps", d.ID)
	case d.Spec == nil || !d.Spec.Launches():
		return fmt.Errorf("job %s is no batch script and no allocation%s", d.ID, instead)
	}
	return nil
}
