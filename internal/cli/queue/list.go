// Package queue is gqueue: lists of jobs, everything about one, why it waits,
// what happens to it, and the few things that can be changed of a job that waits
// or runs. What can be said of a job in a list is in package jobs.
package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// List is gqueue without another command, and its flags.
type List struct {
	IDs      []string `arg:"" optional:"" name:"id" sep:"none" help:"Only these jobs: numbers, as 12 or 12-15,20; UUIDs or the beginning of one; names."`
	All      bool     `short:"a" help:"Also jobs that have ended."`
	Long     bool     `short:"l" xor:"columns" help:"More columns, and reasons in sentences."`
	Format   string   `short:"o" xor:"columns" placeholder:"FORMAT" help:"Columns by name, as id,name,state,left,priority; or Slurm's format, as '%i %.20j %T %M %R'; %.8i is 8 wide and flush right; or json or yaml."`
	Priority bool     `xor:"columns" help:"Jobs that wait, with their priority by factor."`
	Start    bool     `xor:"columns" help:"Jobs that wait, by when they are expected to start, and what the others wait for, in a sentence."`
	Sort     string   `short:"S" placeholder:"COLUMNS" help:"Order by these columns, as -priority,id; a minus for the largest first."`
	Users    []string `short:"u" name:"user" help:"Only jobs of these users."`
	Me       bool     `help:"Only your own jobs."`
	Projects []string `short:"A" name:"project" help:"Only jobs of these projects."`
	States   []string `short:"t" help:"Only jobs in these states, as RUNNING,QUEUED; all; or Slurm's PD, R, CD, F."`
	Clusters []string `short:"p" name:"cluster" aliases:"partition" help:"Only jobs of these partitions, or clusters by their numbers."`
	QOS      []string `name:"qos" short:"q" help:"Only jobs of these QOS."`
	Names    []string `short:"n" name:"name" help:"Only jobs with these names."`
	Nodes    []string `short:"w" sep:"none" help:"Only jobs on these nodes, as gpu[01-04,07]."`
	Limit    int      `short:"c" help:"At most so many jobs."`
	NoHeader bool     `short:"h" help:"No header line."`
	Interval int      `short:"i" placeholder:"SECONDS" help:"Show it live, drawn again that often, until Ctrl-C."`
	Watch    bool     `help:"Show it live, as -i 2."`
	As       string   `placeholder:"SYSTEM" help:"States in the words of gpulab1, nvct, dstack, k8s, tao or slurm."`
}

// Words takes arguments of which none is a flag.
func (o *List) Words(ids []string) bool {
	o.IDs = ids
	return true
}

// The columns of the lists, by name.
const (
	shown         = "id,name,user,project,state,time,limit,gpus,cpus,mem,nodes/reason"
	shownLong     = "id,name,user,project,state,time,limit,gpus,cpus,mem,cluster,priority,submitted,start,nodes/reason"
	shownStart    = "id,name,user,project,gpus,cpus,mem,submitted,start,nodes/reason"
	shownPriority = "id,name,user,project,qos,priority,age,fairshare,size,qospoints,adjustment,other,reason"
)

// Sortable are the names of the columns, for --sort.
func Sortable() []string { return strings.Split(jobs.Columns.Known(), ", ") }

// selection is the flags of List understood.
type selection struct {
	users, projects, names, nodes, qos []string
	states                             []job.State
	clusters                           []string
	factors                            bool // the terms of priorities are shown
}

// Run lists jobs.
func (o *List) Run(ctx context.Context, a *cli.App) error {
	interval, err := watch.Interval(o.Interval, o.Watch)
	if err != nil {
		return err
	}
	if o.Format == "json" || o.Format == "yaml" {
		a.Output.JSON, a.Output.YAML, o.Format = true, o.Format == "yaml", ""
	}
	if o.Limit < 0 {
		return exit.Usagef("--limit is %d: want 1 or more", o.Limit)
	}
	form, err := o.layout()
	if err != nil {
		return err
	}
	var order table.Order[api.Job]
	if o.Sort != "" {
		if order, err = jobs.Columns.Order(o.Sort + ",jobid"); err != nil {
			return err
		}
	}
	if (o.Priority || o.Start) && len(o.States) == 0 {
		o.States = []string{string(job.Queued)}
	}
	if err := checkAs(a, o.As); err != nil {
		return err
	}
	sel, err := o.selection(ctx, a)
	if err != nil {
		return err
	}
	sel.factors = o.Priority || order.Asked() || form.Asked()
	var list *api.JobList
	strangers := strangers{app: a, known: map[string]bool{}}
	get := func() (err error) {
		if list, err = o.fetch(ctx, a, sel); err != nil {
			return err
		}
		switch {
		case order != nil:
			order.Sort(list.Jobs, a.View())
		case o.Start:
			slices.SortStableFunc(list.Jobs, sooner)
		}
		strangers.ask(ctx, o.Users, list.Jobs)
		list.Jobs = first(list.Jobs, o.Limit)
		return nil
	}
	draw := func() error {
		if err := o.print(a, list, form); err != nil {
			return err
		}
		if !a.SayUnknown(strangers.names) && len(list.Jobs) == 0 && len(o.Users) > 0 && !a.Output.JSON && !a.Output.IDs && !form.IsFormat() {
			a.Say("no jobs of %s; ended ones: --all", strings.Join(o.Users, ", "))
		}
		return nil
	}
	if interval > 0 {
		changes := client.EventFilter{User: jobs.Only(sel.users), Project: jobs.Only(sel.projects), Jobs: numbersOnly(o.IDs)}
		return watch.List{Changes: changes, Interval: interval, Fetch: get, Draw: draw}.Run(ctx, a)
	}
	if err := get(); err != nil {
		return err
	}
	if len(list.Jobs) == 0 {
		a.SayAbsent(ctx, cli.Filters{Projects: o.Projects, QOS: o.QOS, Places: o.Clusters, Nodes: sel.nodes})
	}
	return draw()
}

// checkAs refuses words of a system that is not known, or in JSON.
func checkAs(a *cli.App, as string) error {
	if err := jobs.CheckSystem(as); err != nil {
		return err
	}
	if as != "" && a.Output.JSON {
		return exit.Usagef("--as is for people: --json has our own states")
	}
	return nil
}

// layout is which columns the list has.
func (o *List) layout() (table.Layout[api.Job], error) {
	switch {
	case o.Format != "":
		return jobs.Columns.Layout(o.Format)
	case o.Priority:
		return jobs.Columns.Columns(shownPriority), nil
	case o.Start:
		return jobs.Columns.Columns(shownStart), nil
	case o.Long:
		return jobs.Columns.Columns(shownLong), nil
	}
	return jobs.Columns.Columns(shown), nil
}

func (o *List) selection(ctx context.Context, a *cli.App) (selection, error) {
	s := selection{projects: o.Projects, names: o.Names, clusters: o.Clusters, qos: o.QOS}
	var err error
	if s.states, err = jobs.ParseStates(o.States); err != nil {
		return s, err
	}
	if s.nodes, err = jobs.ParseNodes(o.Nodes); err != nil {
		return s, err
	}
	s.users, err = a.Users(ctx, o.Users, o.Me)
	return s, err
}

// fetch gets the jobs of a selection. The controller filters by any number of
// states but one value of each other kind; what has several is filtered here.
func (o *List) fetch(ctx context.Context, a *cli.App, s selection) (*api.JobList, error) {
	if len(o.IDs) > 0 {
		return fetchNamed(ctx, a, o.IDs)
	}
	f := client.JobFilter{
		States: s.states, User: jobs.Only(s.users), Project: jobs.Only(s.projects), Name: jobs.Only(s.names),
		Node: jobs.Only(s.nodes), QOS: jobs.Only(s.qos), All: o.All, Factors: s.factors,
	}
	for _, st := range s.states {
		f.All = f.All || st.Final()
	}
	here := len(s.users) > 1 || len(s.projects) > 1 || len(s.names) > 1 || len(s.nodes) > 1 || len(s.clusters) > 0 || len(s.qos) > 1
	if !here && o.Sort == "" && !o.Start { // what is first is known here
		f.Limit = o.Limit
	}
	list, err := a.Client.Jobs(ctx, f)
	if err != nil || !here {
		return list, err
	}
	list.Jobs = slices.DeleteFunc(list.Jobs, func(j api.Job) bool { return !s.match(&j) })
	list.Total = len(list.Jobs)
	return list, nil
}

// sooner orders by expected start; those without one come last.
func sooner(x, y api.Job) int {
	a, b := jobs.StartOf(&x), jobs.StartOf(&y)
	switch {
	case a.IsZero() != b.IsZero():
		return cmp.Compare(b.Unix(), a.Unix()) // the zero time is before all others
	default:
		return a.Compare(b)
	}
}

// first is the first so many jobs, 0 for all.
func first(list []api.Job, limit int) []api.Job {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}

func (s *selection) match(j *api.Job) bool {
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	return has(s.users, j.User) && has(s.projects, j.Project) && has(s.names, j.Name) && has(s.qos, j.QOS) &&
		(len(s.states) == 0 || jobs.InStates(s.states, j)) &&
		jobs.InPlaces(s.clusters, j.Cluster, jobs.Partitions(j.Partition)) &&
		(len(s.nodes) == 0 || slices.ContainsFunc(j.Nodes, func(n string) bool { return slices.Contains(s.nodes, n) }))
}

// print prints jobs in the form that was asked for.
func (o *List) print(a *cli.App, l *api.JobList, form table.Layout[api.Job]) error {
	switch {
	case a.Output.JSON:
		if l.Jobs == nil {
			l.Jobs = []api.Job{}
		}
		return a.WriteJSON(l)
	case a.Output.IDs:
		return listIDs(a, l)
	}
	v := a.View()
	v.Text, v.As, v.NoHeader = o.Long || o.Start, o.As, o.NoHeader
	if err := form.Write(a.Out, l.Jobs, v); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	if form.IsFormat() {
		return nil
	}
	if len(l.Jobs) < l.Total {
		a.Say("these are the first %d of %d jobs", len(l.Jobs), l.Total)
	}
	if a.Term.Out && (len(l.Jobs) > 0 || len(o.Users) == 0) {
		o.hint(a, l.Jobs)
	}
	return nil
}

func listIDs(a *cli.App, l *api.JobList) error {
	var b []byte
	for i := range l.Jobs {
		b = append(append(b, jobs.ID(&l.Jobs[i])...), '\n')
	}
	_, err := a.Out.Write(b)
	return err
}

// hint tells a person what the list leaves out.
func (o *List) hint(a *cli.App, list []api.Job) {
	if len(o.IDs) > 0 || o.All || len(o.States) > 0 {
		return
	}
	active, waiting := 0, 0
	for i := range list {
		if list[i].State.Active() {
			active++
		} else if t := list[i].Tasks; t != nil {
			waiting += t.NumWaiting
		} else {
			waiting++
		}
	}
	a.Say("%d active, %d waiting; ended jobs: gqueue --all; one job: gqueue show ID", active, waiting)
}
