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
	"gbatch/internal/client"
	"gbatch/internal/job/sizes"
	"gbatch/internal/job/times"
)

// Update is gqueue update.
type Update struct {
	ID       string `arg:"" name:"id" help:"Number, UUID or the beginning of a UUID."`
	CPUs     *int   `name:"cpus" help:"Cores for each of its containers."`
	Priority *int   `help:"Of a waiting job: what is added to its priority. Only operators may raise it."`
	Mem      string `placeholder:"SIZE" help:"Memory for each of its containers, without its tmpfs, as 64G."`

	Time    string `short:"t" placeholder:"LIMIT" help:"Its time limit, also while it runs: minutes, h:mm:ss, d-hh, or 2h, 1d; +2h for so much more. More is for operators, and for a running job's user where nobody was promised what it holds."`
	TimeMin string `placeholder:"LIMIT" help:"Of a waiting job: a time limit down to this will do, where it starts sooner by it; 0 for no other than --time."`
	JobName string `name:"name" help:"Its name."`
	Project string `placeholder:"NAME" help:"Of a job that has not run: the project that it is for."`
	QOS     string `name:"qos" placeholder:"NAME" help:"Of a waiting job: its class of service."`

	Comment *string `placeholder:"TEXT" help:"Its comment, for people; empty for none."`
}

// Run changes a job that waits, or one that runs.
func (o *Update) Run(ctx context.Context, a *cli.App) error {
	change := api.JobChange{Name: o.JobName, Priority: o.Priority, Project: o.Project, QOS: o.QOS, Comment: o.Comment}
	if err := o.limit(ctx, a, &change); err != nil {
		return err
	}
	if err := o.limitMin(&change); err != nil {
		return err
	}
	mem, err := o.memory()
	if err != nil {
		return err
	}
	cpus := 0
	if o.CPUs != nil {
		if cpus = *o.CPUs; cpus < 1 {
			return exit.Usagef("--cpus %d: want 1 or more", cpus)
		}
	}
	changes := change != api.JobChange{}
	switch {
	case !changes && cpus == 0 && mem == 0:
		return exit.Usagef("nothing to change: give --cpus, --mem, --time, --time-min, --priority, --name, --project, --qos or --comment")
	case !changes:
		return o.resize(ctx, a, &api.ResourcesRequest{CPUs: cpus, CPUMemoryGB: mem})
	case cpus+mem > 0:
		return exit.Usagef("--cpus and --mem go to a job's nodes, the others to the controller: give them in two commands")
	}
	resp, err := a.Client.Action(ctx, "update", &api.ActionRequest{IDs: []string{o.ID}, Change: &change})
	if err != nil {
		return err
	}
	return cancel.Print(a, resp)
}

// limit is what --time says: a limit, or how much longer.
func (o *Update) limit(ctx context.Context, a *cli.App, change *api.JobChange) error {
	if o.Time == "" {
		return nil
	}
	text, more := strings.CutPrefix(o.Time, "+")
	d, limited, err := times.ParseLimit(text)
	if err != nil || !limited {
		return exit.Usagef("--time %q: %w", o.Time, cmp.Or(err, errors.New("want a limit")))
	}
	if change.LimitS = int64(d); more {
		j, err := a.Client.Job(ctx, o.ID, client.JobOptions{})
		if err != nil {
			return err
		}
		change.LimitS += j.LimitS
	}
	return nil
}

// limitMin is what --time-min says.
func (o *Update) limitMin(change *api.JobChange) error {
	if o.TimeMin == "" {
		return nil
	}
	d, limited, err := times.ParseLimit(o.TimeMin)
	if err == nil && !limited && o.TimeMin != "0" {
		err = errors.New("want the least limit that will do, or 0 for none")
	}
	if err != nil {
		return exit.Usagef("--time-min %q: %w", o.TimeMin, err)
	}
	least := int64(d)
	change.LimitMinS = &least
	return nil
}

// memory is what --mem says, in GiB. A number alone is of MiB, as everywhere, and
// hardly ever meant so if it is small.
func (o *Update) memory() (int, error) {
	if o.Mem == "" {
		return 0, nil
	}
	mib, err := sizes.Parse(o.Mem)
	switch {
	case err != nil:
		return 0, exit.Usagef("--mem %q: %w", o.Mem, err)
	case mib == 0:
		return 0, exit.Usagef("--mem %s: a container needs some", o.Mem)
	case mib < 1024 && strings.Trim(o.Mem, "0123456789") == "":
		return 0, exit.Usagef("--mem %s is of MiB, and less than the least that can be given: write %sG for GiB", o.Mem, o.Mem)
	}
	return sizes.GiB(mib), nil
}

// resize gives a running job other CPU and memory, and waits until its nodes
// have done so or said why not. 0 keeps what it has.
func (o *Update) resize(ctx context.Context, a *cli.App, want *api.ResourcesRequest) error {
	resp, err := a.Client.Resize(ctx, o.ID, want)
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
	return a.Tell("job %d: set %s; %s", resp.Number, names, human.Clean(resp.Message))
}
