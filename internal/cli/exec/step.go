package exec

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/launch"
)

// isStep says whether an id names a step, as 12.0 and 12_3.0.
func isStep(id string) bool {
	_, step, ok := strings.Cut(id, ".")
	_, err := strconv.ParseUint(step, 10, 32)
	return ok && err == nil
}

// shell is what begins where no command is named.
var shell = []string{"sh", "-c", "command -v bash >/dev/null && exec bash; exec sh"}

// inStep runs a command where the tasks of a step are: in the container that the step has
// of its own, or in the job's. It is a step, too, of one task, which srun in the job starts.
func (o *Exec) inStep(ctx context.Context, a *cli.App) error {
	id, number, _ := strings.Cut(o.ID, ".")
	if o.Attach || len(o.Forward) > 0 || o.Container+o.User != "" {
		return exit.Usagef("--attach, --forward, --container and --user do not go with a step: name the job, %s", id)
	}
	d, err := a.Client.Job(ctx, id, client.JobOptions{})
	if err != nil {
		return err
	}
	node, err := nodeOf(d, number, o.Rank)
	if err != nil {
		return err
	}
	args := []string{job.LaunchDir + "/srun", "--" + launch.BesideOption + "=" + number, "-n1", "-N1", "-w", node}
	if o.WorkDir != "" {
		args = append(args, "--chdir", o.WorkDir)
	}
	var names []string // of variables that win over the image's
	for _, kv := range o.Env {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	if names != nil {
		args = append(args, "--container-env="+strings.Join(names, ","))
	}
	command := o.Args
	if len(command) == 0 {
		command = shell
		o.Terminal = o.Terminal || a.Term.In && a.Term.Out && !o.Pipes
	}
	if o.Terminal {
		args = append(args, "--pty")
	}
	x := Exec{ID: id, Args: slices.Concat(args, []string{"--"}, command), Terminal: o.Terminal, Pipes: !o.Terminal, Env: o.Env}
	return x.exec(ctx, a)
}

// nodeOf is where a command beside a step's tasks runs: the step's first node, or that of
// the job's rank that is named.
func nodeOf(d *api.JobDetail, number string, rank int) (string, error) {
	i := slices.IndexFunc(d.Steps, func(s api.Step) bool { return fmt.Sprint(s.Number) == number && s.Ended.IsZero() && len(s.Nodes) > 0 })
	if i < 0 {
		return "", fmt.Errorf("step %s of job %s does not run: gqueue show %[2]s lists those that do", number, d.ID)
	}
	nodes := d.Steps[i].Nodes
	switch {
	case rank == 0:
		return nodes[0], nil
	case rank >= len(d.Nodes) || !slices.Contains(nodes, d.Nodes[rank]):
		return "", fmt.Errorf("rank %d has no task of step %s: it runs on %s", rank, number, strings.Join(nodes, ", "))
	}
	return d.Nodes[rank], nil
}
