package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/cancel"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/secret"
	"gbatch/internal/cli/watch"
	"gbatch/internal/job"
)

// Update is gqueue update.
type Update struct {
	ID       string `arg:"" name:"id" help:"Number, UUID or the beginning of a UUID."`
	CPUs     int    `name:"cpus" help:"Cores for each of its containers."`
	Priority *int   `help:"Of a waiting job: what is added to its priority. Only operators may raise it."`
	Mem      int    `placeholder:"GIB" help:"Memory for each of its containers, GiB, without its tmpfs."`

	Time    string `short:"t" placeholder:"LIMIT" help:"Its time limit, also while it runs: minutes, h:mm:ss, d-hh, or 2h, 1d. Only operators may raise it."`
	JobName string `name:"name" help:"Its name."`
}

// Run changes a job that waits, or one that runs.
func (o *Update) Run(ctx context.Context, a *cli.App) error {
	change := api.JobChange{Name: o.JobName, Priority: o.Priority}
	if o.Time != "" {
		d, limited, err := job.ParseLimit(o.Time)
		if err != nil || !limited {
			return exit.Usagef("--time %q: %w", o.Time, cmp.Or(err, errors.New("want a limit")))
		}
		change.LimitS = int64(d)
	}
	changes := change != api.JobChange{}
	switch {
	case !changes && o.CPUs == 0 && o.Mem == 0:
		return exit.Usagef("nothing to change: give --cpus, --mem, --time, --priority or --name")
	case !changes:
		return o.resize(ctx, a)
	case o.CPUs+o.Mem > 0:
		return exit.Usagef("--cpus and --mem go to a job's nodes, the others to the controller: give them in two commands")
	}
	resp, err := a.Client.Action(ctx, "update", &api.ActionRequest{IDs: []string{o.ID}, Change: &change})
	if err != nil {
		return err
	}
	return cancel.Print(a, resp)
}

// resize gives a running job other CPU and memory, and waits until its nodes
// have done so or said why not. 0 keeps what it has.
func (o *Update) resize(ctx context.Context, a *cli.App) error {
	resp, err := a.Client.Resize(ctx, o.ID, &api.ResourcesRequest{CPUs: o.CPUs, CPUMemoryGB: o.Mem})
	if err != nil {
		return err
	}
	d, err := watch.Job(ctx, a, o.ID, func(d *api.JobDetail) bool { return !resizing(d) })
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return printJob(a, d)
	}
	if len(d.Attempts) > 0 {
		for i, r := range d.Attempts[len(d.Attempts)-1].Ranks {
			if r.Resize != nil && r.Resize.Failed != "" {
				return fmt.Errorf("job %d keeps what it has: rank %d on %s: %s", d.Number, i, r.Node, r.Resize.Failed)
			}
		}
	}
	if d.State.Final() {
		return fmt.Errorf("job %d ended meanwhile", d.Number)
	}
	_, err = fmt.Fprintln(a.Out, human.Clean(fmt.Sprintf("job %d %s", d.Number, resp.Message)))
	return err
}

// resizing says that a node was asked and has not answered.
func resizing(d *api.JobDetail) bool {
	if len(d.Attempts) == 0 {
		return false
	}
	for _, r := range d.Attempts[len(d.Attempts)-1].Ranks {
		if r.Resize != nil && r.Resize.Failed == "" {
			return true
		}
	}
	return false
}

// Secret is gqueue secret.
type Secret struct {
	ID     string   `arg:"" help:"Number, UUID or the beginning of a UUID."`
	Values []string `arg:"" name:"secret" help:"NAME to take it from the environment or to be asked, NAME@FILE, or NAME@- for standard input."`
}

// Run gives a job new values of secrets.
func (o *Secret) Run(ctx context.Context, a *cli.App) error {
	values, err := secret.Read(o.Values, secret.Source{Env: a.Env, In: a.In, Ask: a.AskHidden()})
	if err != nil {
		return err
	}
	resp, err := a.Client.SetSecrets(ctx, o.ID, values)
	if done, err := a.Answered(resp, err); done {
		return err
	}
	names := strings.Join(slices.Sorted(maps.Keys(values)), ", ")
	_, err = fmt.Fprintf(a.Out, "job %d: set %s; %s\n", resp.Number, names, human.Clean(resp.Message))
	return err
}
