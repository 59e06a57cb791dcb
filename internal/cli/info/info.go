// Package info is ginfo: the nodes and their GPUs, what is free on them, and what
// is wrong with them.
package info

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
	"gbatch/internal/cli/reserved"
	"gbatch/internal/cli/table"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
)

// Info is ginfo and its flags.
type Info struct {
	Node     []string `arg:"" optional:"" placeholder:"NODE" help:"One node or several by name, each with all that is known of it: since when it is as it is, and what became of it lately."`
	Short    bool     `short:"s" xor:"view" help:"A box with one line per node: free and total workers, GPUs, CPUs and memory."`
	PerNode  bool     `short:"N" xor:"view" help:"One line per node, also for nodes that are alike."`
	GPUs     bool     `name:"gpus" xor:"view" help:"One line per GPU."`
	Parts    bool     `name:"partitions" xor:"view" help:"One line per partition: what is free there, how long jobs run, and whose it takes."`
	Licenses bool     `xor:"view" help:"One line per licence that the site counts: how many are free, and how many are waited for."`
	Reserved bool     `short:"T" name:"reservations" xor:"view" help:"One line per reservation: when it is or comes next, when again, of which nodes and for whom."`
	Plan     bool     `xor:"view" help:"What nodes do and are to do: until when jobs run at the latest, which starts are promised, and what is reserved."`
	Users    bool     `xor:"view" help:"Who holds what now, and how much of theirs waits."`
	Reasons  bool     `short:"R" xor:"view" help:"Only nodes that something is wrong with, and what."`
	Format   string   `short:"o" xor:"view" placeholder:"FORMAT" help:"Columns by name, as name,state,gpus,driver,features; or sinfo's format, as '%N %T %E'."`
	Interval int      `short:"i" placeholder:"SECONDS" help:"Show it live, drawn again that often, until Ctrl-C."`
	Watch    bool     `help:"Show it live, as -i 2."`
	Clusters []string `short:"p" name:"cluster" aliases:"partition" help:"Only these partitions, or clusters by their numbers."`
	Nodes    []string `short:"n" sep:"none" help:"Only these nodes, as gpu[01-04,07]."`
	NoHeader bool     `short:"h" help:"No header line."`
}

// Run prints the nodes and what is free on them.
func (o *Info) Run(ctx context.Context, a *cli.App) error {
	interval, err := watch.Interval(o.Interval, o.Watch)
	if err != nil {
		return err
	}
	switch {
	case o.Users && (len(o.Node)+len(o.Nodes)+len(o.Clusters) > 0 || interval > 0):
		return exit.Usagef("--users is of all nodes, and once: leave out nodes, clusters and --watch; gqueue -w NODES lists the jobs there")
	case o.Users:
		return o.users(ctx, a)
	case o.Parts && (len(o.Node)+len(o.Nodes) > 0 || interval > 0):
		return exit.Usagef("--partitions is of partitions, and once: leave out nodes and --watch; ginfo -p NAME lists the nodes of one")
	case o.Parts:
		return o.partitions(ctx, a)
	case o.Licenses && (len(o.Node)+len(o.Nodes)+len(o.Clusters) > 0 || interval > 0):
		return exit.Usagef("--licenses is of the whole site, and once: leave out nodes, partitions and --watch")
	case o.Licenses:
		return o.licenses(ctx, a)
	case o.Reserved && (len(o.Node)+len(o.Nodes)+len(o.Clusters) > 0 || interval > 0):
		return exit.Usagef("--reservations is of the whole site, and once: leave out nodes, partitions and --watch")
	case o.Reserved:
		return reserved.List(ctx, a, o.NoHeader)
	case o.Plan && (len(o.Node) > 0 || interval > 0):
		return exit.Usagef("--plan is of all nodes or those of -n and -p, and once: leave out the names and --watch, as in ginfo --plan -n NODES")
	case o.Plan:
		return o.plan(ctx, a)
	case len(o.Node) > 0:
		return o.showNodes(ctx, a)
	}
	if _, err := o.layout(false); err != nil { // before anybody is asked
		return err
	}
	var nodes []api.Node
	fetch := func() error {
		info, err := a.Client.Cluster(ctx)
		if err != nil {
			return err
		}
		nodes, err = o.choose(info.Nodes)
		return err
	}
	draw := func() error {
		form, err := o.layout(slices.ContainsFunc(nodes, func(n api.Node) bool { return len(n.Partitions) > 0 }))
		if err != nil {
			return err
		}
		return o.print(a, nodes, form)
	}
	if interval > 0 {
		return watch.List{Changes: client.EventFilter{Nodes: true}, Interval: interval, Fetch: fetch, Draw: draw}.Run(ctx, a)
	}
	if err := fetch(); err != nil {
		return err
	}
	if len(nodes) == 0 {
		a.SayAbsent(ctx, cli.Filters{Places: o.Clusters})
	}
	return draw()
}

func (o *Info) print(a *cli.App, nodes []api.Node, form table.Layout[nodeRow]) error {
	var err error
	switch {
	case a.Output.JSON:
		return a.WriteJSON(api.ClusterInfo{Nodes: nodes})
	case o.Short:
		return printBox(a.Out, nodes)
	case o.GPUs:
		err = gpuTable(nodes).NoHeader(o.NoHeader).Fit(a.Term.Width).Write(a.Out)
	default:
		v := a.View()
		v.NoHeader = o.NoHeader
		err = form.Write(a.Out, o.rows(nodes), v)
	}
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if len(nodes) == 0 && a.Term.Out && len(o.Clusters) == 0 {
		a.Say("no node has joined yet; start gnoded on one, or try `gctld dev`")
	}
	return nil
}

// choose filters and sorts by cluster and name.
func (o *Info) choose(nodes []api.Node) ([]api.Node, error) {
	names, err := jobs.ParseNodes(o.Nodes)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(nodes, func(n api.Node) bool { return n.Name == name }) {
			return nil, &exit.Error{Code: exit.NotFound, Err: fmt.Errorf("no node is called %q; ginfo lists them", name)}
		}
	}
	out := []api.Node{}
	for _, n := range nodes {
		if jobs.InPlaces(o.Clusters, n.Cluster, n.Partitions) && (len(names) == 0 || slices.Contains(names, n.Name)) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(x, y api.Node) int {
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), strings.Compare(x.Name, y.Name))
	})
	return out, nil
}
