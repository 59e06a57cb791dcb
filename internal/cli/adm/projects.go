package adm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// projectFlags say what `gadm project add` and `set` change; what is not given
// stays as it is.
type projectFlags struct {
	Name       string           `arg:"" help:"The project."`
	GID        *int             `name:"gid" help:"Group of its storage."`
	Shares     *int64           `help:"Its shares of the cluster, beside other projects'."`
	Parent     *string          `help:"A project whose share it has a part of; empty: none."`
	Budget     *int64           `help:"GPU minutes that it and those below it may use; 0: no bound."`
	Period     *string          `name:"budget-period" placeholder:"month" help:"month: the budget is for each calendar month; empty: in all."`
	UserShares map[string]int64 `name:"user-share" placeholder:"USER=N" help:"Of its share, what a user has beside others; 0: as others."`
	Members    []string         `short:"u" name:"member" help:"The users that are its members; or, as in +ann,-bob, who comes and goes."`
	Groups     []string         `short:"g" name:"group" help:"The unix groups whose members are its members, in the same form."`
	Everyone   bool             `help:"No members: everyone may use it."`
	Clusters   []int            `short:"p" name:"cluster" help:"The clusters that its jobs may use."`
	AnyCluster bool             `help:"All clusters."`
	Running    *int             `help:"At most so many jobs at once; 0: the site's bound."`
	Queued     *int             `help:"At most so many waiting jobs; 0: the site's bound."`
	GPUs       *float64         `name:"gpus" help:"At most so many GPUs at once; 0: the site's bound."`
	GPUMinutes *int64           `name:"gpu-minutes" help:"At most so many GPU minutes of running jobs; 0: the site's bound."`

	Privileged   *bool    `negatable:"" help:"Its jobs may be root on nodes that allow it."`
	Capabilities []string `name:"capability" help:"The capabilities that its jobs may ask for on nodes that allow it; or, as in +NET_RAW,-MKNOD, which come and go."`
	HostNetwork  *bool    `name:"host-network" negatable:"" help:"Its jobs may use the network of nodes that allow it."`
}

// AddProject is gadm project add.
type AddProject struct{ projectFlags }

// Run makes a project.
func (o *AddProject) Run(ctx context.Context, a *cli.App) error {
	p := api.Project{Name: o.Name}
	if err := o.apply(&p); err != nil {
		return err
	}
	return o.put(ctx, a, p, true)
}

// put changes the project, and says whom it names that is not known.
func (c *projectFlags) put(ctx context.Context, a *cli.App, p api.Project, create bool) error {
	now, err := a.Client.PutProject(ctx, p, create)
	if err != nil {
		return err
	}
	did := "changed"
	if create {
		did = "made"
	}
	fmt.Fprintf(a.Out, "project %s %s\n", c.Name, did)
	for _, w := range now.Warnings {
		a.Say("note: %s", w)
	}
	return nil
}

// SetProject is gadm project set.
type SetProject struct{ projectFlags }

// Run changes a project.
func (o *SetProject) Run(ctx context.Context, a *cli.App) error {
	l, err := a.Client.Projects(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.Projects, func(p api.Project) bool { return p.Name == o.Name })
	if i < 0 {
		return &exit.Error{Code: exit.NotFound, Err: fmt.Errorf("there is no project %q; `gadm project add` makes one", o.Name)}
	}
	if err := o.apply(&l.Projects[i]); err != nil {
		return err
	}
	return o.put(ctx, a, l.Projects[i], false)
}

func (c *projectFlags) apply(p *api.Project) error {
	set(&p.GID, c.GID)
	set(&p.Shares, c.Shares)
	set(&p.Parent, c.Parent)
	set(&p.Budget, c.Budget)
	set(&p.BudgetPeriod, c.Period)
	if p.UserShares == nil {
		p.UserShares = map[string]int64{}
	}
	for user, n := range c.UserShares {
		if p.UserShares[user] = n; n == 0 {
			delete(p.UserShares, user)
		}
	}
	set(&p.Limits.Running, c.Running)
	set(&p.Limits.Queued, c.Queued)
	set(&p.Limits.GPUs, c.GPUs)
	set(&p.Limits.GPUMinutes, c.GPUMinutes)
	if c.Everyone {
		p.Members, p.Groups = nil, nil
	}
	var err error
	if p.Members, err = edited(p.Members, c.Members); err != nil {
		return exit.Usagef("--member: %w", err)
	}
	if p.Groups, err = edited(p.Groups, c.Groups); err != nil {
		return exit.Usagef("--group: %w", err)
	}
	if len(p.Members)+len(p.Groups) == 0 && len(c.Members)+len(c.Groups) > 0 {
		return exit.Usagef("nobody would be a member of project %s then, and a project without members is for everyone: if that is meant, give --everyone instead", p.Name)
	}
	if len(c.Clusters) > 0 || c.AnyCluster {
		p.Clusters = c.Clusters
	}
	set(&p.Privileged, c.Privileged)
	set(&p.HostNetwork, c.HostNetwork)
	return c.allow(p)
}

// allow changes what capabilities jobs may ask for.
func (c *projectFlags) allow(p *api.Project) error {
	var names []string
	for _, had := range p.Capabilities {
		names = append(names, string(had))
	}
	names, err := edited(names, c.Capabilities)
	if err != nil {
		return exit.Usagef("--capability: %w", err)
	}
	p.Capabilities = nil
	for _, name := range names {
		p.Capabilities = append(p.Capabilities, job.Capability(name))
	}
	return nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// edited is a list with names added (+name) and taken out (-name), or replaced
// by names without a sign.
func edited(old, change []string) ([]string, error) {
	out := slices.Clone(old)
	plain := 0
	for _, c := range change {
		switch name := strings.TrimLeft(c, "+-"); {
		case strings.HasPrefix(c, "+"):
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		case strings.HasPrefix(c, "-"):
			if !slices.Contains(out, name) {
				return nil, fmt.Errorf("%q is not in the list", name)
			}
			out = slices.DeleteFunc(out, func(n string) bool { return n == name })
		default:
			plain++
		}
	}
	if plain > 0 && plain < len(change) {
		return nil, errors.New("give either names with + and -, or the whole new list without")
	}
	if plain > 0 {
		return change, nil
	}
	return out, nil
}

// RemoveProjects is gadm project remove.
type RemoveProjects struct {
	Names []string `arg:"" help:"Projects."`
}

// Run removes projects.
func (o *RemoveProjects) Run(ctx context.Context, a *cli.App) error {
	return each(a, o.Names, "project %s removed\n", func(n string) error { return a.Client.DropProject(ctx, n) })
}

// Projects is gadm project list.
type Projects struct{}

// Run lists projects.
func (Projects) Run(ctx context.Context, a *cli.App) error {
	l, err := a.Client.Projects(ctx)
	if done, err := a.Answered(l, err); done {
		return err
	}
	shares, err := a.Client.Shares(ctx)
	if err != nil {
		return err
	}
	t := table.New("NAME", "GID", "SHARES", "CLUSTERS", "LIMITS", "BUDGET", "FROM", "MAY", "MEMBERS")
	for _, p := range l.Projects {
		from := "gadm"
		if p.File {
			from = "file"
		}
		t.Row(p.Name, strconv.Itoa(p.GID), strconv.FormatInt(max(p.Shares, 1), 10), clustersOf(p), limitsOf(p.Limits), budgetOf(shares, p.Name), from, allowedTo(p), membersOf(p))
	}
	return t.Fit(a.Term.Width).Write(a.Out)
}

// budgetOf is what a project has used of its budget.
func budgetOf(l *api.ShareList, project string) string {
	for _, s := range l.Shares {
		if s.Project == project && s.User == "" && s.Budget != nil {
			return human.Budget(s.Budget.Used, s.Budget.Hours, s.Budget.Monthly)
		}
	}
	return ""
}

func clustersOf(p api.Project) string {
	if len(p.Clusters) == 0 {
		return "all"
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(p.Clusters)), ","), "[]")
}

// allowedTo is what the project's jobs may have beyond the usual.
func allowedTo(p api.Project) string {
	var out []string
	if p.Privileged {
		out = append(out, "privileged")
	}
	if p.HostNetwork {
		out = append(out, "host-network")
	}
	for _, c := range p.Capabilities {
		out = append(out, string(c))
	}
	return strings.Join(out, ",")
}

func membersOf(p api.Project) string {
	who := slices.Clone(p.Members)
	for _, g := range p.Groups {
		who = append(who, "group "+g)
	}
	if len(who) == 0 {
		return "everyone"
	}
	return strings.Join(who, ", ")
}

func limitsOf(l api.ProjectLimits) string {
	var out []string
	for _, x := range []struct {
		name  string
		value float64
	}{{"running", float64(l.Running)}, {"queued", float64(l.Queued)}, {"gpus", l.GPUs}, {"gpuMinutes", float64(l.GPUMinutes)}} {
		if x.value > 0 {
			out = append(out, fmt.Sprintf("%s=%v", x.name, x.value))
		}
	}
	return strings.Join(out, " ")
}
