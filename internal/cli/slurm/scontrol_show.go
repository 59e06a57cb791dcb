package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/slurm/hostlist"
	"gbatch/internal/job"
)

// show shows what the first argument names: scontrol show job 12.
func (c *control) show(ctx context.Context, args []string) error {
	var rest []string
	for _, arg := range args { // options may stand behind, also as words
		switch {
		case strings.EqualFold(arg, "oneliner"):
			c.oneLine = true
		case !strings.EqualFold(arg, "details"):
			rest = append(rest, arg)
		}
	}
	if len(rest) == 0 {
		return exit.Usagef("too few arguments for keyword:show; name job, node, partition, reservation, config, hostnames or hostlist")
	}
	what, args := strings.ToLower(rest[0]), rest[1:]
	if key, value, ok := strings.Cut(what, "="); ok { // show job=12
		what, args = key, append([]string{value}, args...)
	}
	is := func(whole string, least int) bool { return len(what) >= least && strings.HasPrefix(whole, what) }
	switch {
	case what == "hostnames" || what == "hostname":
		return hostlist.Names(c.app, args)
	case what == "hostlist", what == "hostlistsorted":
		return hostlist.List(c.app, args, what == "hostlistsorted")
	case is("jobs", 1), is("jobid", 1):
		return c.showJobs(ctx, args)
	case is("nodes", 1):
		return c.showNodes(ctx, args)
	case is("partitions", 2):
		return c.showPartitions(ctx, args)
	case is("reservations", 1):
		return c.showReservations(ctx, args)
	case is("config", 2):
		return c.showConfig(ctx)
	case is("steps", 2):
		return c.showSteps(ctx, args)
	case is("licenses", 1):
		return c.showLicenses(ctx, args)
	case is("daemons", 1):
		fmt.Fprintln(c.app.Out, "slurmctld slurmd")
		return nil
	case is("topology", 1):
		return fmt.Errorf("no topology information available")
	}
	return exit.Usagef("invalid entity:%s for keyword:show; there are job, node, partition, reservation, config, hostnames, hostlist and hostlistsorted", what)
}

func (c *control) showJobs(ctx context.Context, args []string) error {
	s := selection{ids: jobList(args), all: true}
	for i, id := range s.ids {
		s.ids[i] = strings.TrimPrefix(id, "JobId=")
	}
	list, err := s.list(ctx, c.app)
	if err != nil {
		return err
	}
	rows, err := rowsOf(ctx, c.app, list, true)
	if err != nil {
		return err
	}
	v := viewOf(c.app)
	if c.json {
		return writeJSON(c.app, "jobs", rows, jobJSON(v))
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.app.Out, "No jobs in the system")
		return nil
	}
	var out []string
	for i := range rows {
		out = append(out, c.job(&v, &rows[i]))
	}
	return c.records(out)
}

// nodesNamed are the nodes of the lists; all without one.
func (c *control) nodesNamed(ctx context.Context, args []string) ([]api.Node, error) {
	names, err := jobs.ParseNodes(args)
	if err != nil {
		return nil, err
	}
	info, err := c.app.Client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return info.Nodes, nil
	}
	var out []api.Node
	for _, name := range names {
		i := slices.IndexFunc(info.Nodes, func(n api.Node) bool { return n.Name == name })
		if i < 0 {
			fmt.Fprintf(c.app.Out, "Node %s not found\n", human.Clean(name))
			return nil, &exit.Error{Code: exit.Failure}
		}
		out = append(out, info.Nodes[i])
	}
	return out, nil
}

func (c *control) showNodes(ctx context.Context, args []string) error {
	list, err := c.nodesNamed(ctx, args)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.app, "nodes", list, nodeJSON)
	}
	var out []string
	for i := range list {
		out = append(out, nodeText(&list[i], c.details))
	}
	return c.records(out)
}

func (c *control) showPartitions(ctx context.Context, args []string) error {
	list, _, err := partitionList(ctx, c.app)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		i := slices.IndexFunc(list, func(p partitionInfo) bool { return p.Name == args[0] })
		if i < 0 {
			fmt.Fprintf(c.app.Out, "Partition %s not found\n", human.Clean(args[0]))
			return &exit.Error{Code: exit.Failure}
		}
		list = list[i : i+1]
	}
	if c.json {
		return writeJSON(c.app, "partitions", list, (*partitionInfo).json)
	}
	var out []string
	for i := range list {
		out = append(out, list[i].text())
	}
	return c.records(out)
}

func (c *control) showReservations(ctx context.Context, args []string) error {
	l, err := c.app.Client.Reservations(ctx)
	if err != nil {
		return err
	}
	list := l.Reservations
	if len(args) > 0 {
		list = slices.DeleteFunc(list, func(r api.Reservation) bool { return r.Name != args[0] })
	}
	switch {
	case c.json:
		return writeJSON(c.app, "reservations", list, reservationJSON)
	case len(list) == 0 && len(args) > 0:
		fmt.Fprintf(c.app.Out, "Reservation %s not found\n", human.Clean(args[0]))
		return &exit.Error{Code: exit.Failure}
	case len(list) == 0:
		fmt.Fprintln(c.app.Out, "No reservations in the system")
		return nil
	}
	v := viewOf(c.app)
	var out []string
	for i := range list {
		out = append(out, reservationText(&v, &list[i]))
	}
	return c.records(out)
}

// leastKept is for how long at least scontrol and squeue know a job that has ended. It is
// found by its number for as long as its record is kept, which is longer.
const leastKept = "300 sec"

// showConfig shows what of Slurm's configuration is so here.
func (c *control) showConfig(ctx context.Context) error {
	status, err := c.app.Client.Status(ctx)
	if err != nil {
		return err
	}
	site, err := c.app.Client.Site(ctx)
	if err != nil {
		return err
	}
	v := viewOf(c.app)
	fmt.Fprintf(c.app.Out, "Configuration data as of %s\n", at(&v, v.Now, ""))
	for _, kv := range [][2]string{
		{"AccountingStorageTRES", "cpu,mem,node,billing,gres/gpu"}, {"AccountingStorageType", "accounting_storage/gbatch"}, {"BOOT_TIME", at(&v, status.Started, "Unknown")}, {"ClusterName", clusterName},
		{"GresTypes", "gpu"}, {"JobAcctGatherType", "jobacct_gather/cgroup"}, {"KillWait", fmt.Sprintf("%d sec", site.GraceS)},
		{"MaxArraySize", fmt.Sprint(job.MaxTasks)}, {"MinJobAge", leastKept},
		{"PriorityType", "priority/multifactor"}, {"ProctrackType", "proctrack/cgroup"}, {"SchedulerParameters", none}, {"SchedulerType", "sched/backfill"},
		{"SelectType", "select/cons_tres"}, {"SelectTypeParameters", "CR_CORE_MEMORY"},
		{"SlurmctldHost[0]", cmp.Or(strings.TrimPrefix(c.app.Client.Address, "unix://"), "localhost")}, {"SLURM_VERSION", version}, {"TaskPlugin", "task/affinity,task/cgroup"},
	} {
		fmt.Fprintf(c.app.Out, "%-23s = %s\n", kv[0], kv[1])
	}
	fmt.Fprintf(c.app.Out, "\nSlurmctld(primary) at %s is UP\n", strings.TrimPrefix(c.app.Client.Address, "unix://"))
	return nil
}
