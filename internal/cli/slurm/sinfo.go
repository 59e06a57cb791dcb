package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
)

// nodeRow is a line of sinfo: nodes of one cluster that are alike.
type nodeRow struct {
	cluster int
	state   string
	nodes   []api.Node
}

func (s *nodeRow) names() string {
	var names []string
	for _, n := range s.nodes {
		names = append(names, n.Name)
	}
	return human.Hosts(names)
}

// span is the least of a number over the nodes, with + where others have more.
func (s *nodeRow) span(b []byte, of func(api.Node) int64) []byte {
	least, most := of(s.nodes[0]), of(s.nodes[0])
	for _, n := range s.nodes {
		least, most = min(least, of(n)), max(most, of(n))
	}
	b = strconv.AppendInt(b, least, 10)
	if most > least {
		b = append(b, '+')
	}
	return b
}

// nodeState is a node's state in Slurm's words.
func nodeState(n *api.Node) string {
	switch {
	case n.State == "lost" || n.State == "suspect":
		return "down"
	case n.State != "up" && n.Jobs > 0:
		return "draining"
	case n.State != "up":
		return "drained"
	case n.Jobs == 0:
		return "idle"
	case n.CPUs.Free == 0:
		return "allocated"
	}
	return "mixed"
}

var shortNodeStates = map[string]string{"down": "down", "draining": "drng", "drained": "drain", "idle": "idle", "allocated": "alloc", "mixed": "mix"}

var sinfoColumns = table.Set[nodeRow]{
	{Letters: "PR", Title: "PARTITION", Cell: func(_ *table.View, b []byte, s *nodeRow) []byte { return strconv.AppendInt(b, int64(s.cluster), 10) }},
	{Letters: "a", Title: "AVAIL", Cell: func(_ *table.View, b []byte, _ *nodeRow) []byte { return append(b, "up"...) }},
	{Letters: "l", Title: "TIMELIMIT", Right: true, Cell: func(_ *table.View, b []byte, _ *nodeRow) []byte { return append(b, "n/a"...) }},
	{Letters: "D", Title: "NODES", Right: true, Cell: func(_ *table.View, b []byte, s *nodeRow) []byte { return strconv.AppendInt(b, int64(len(s.nodes)), 10) }},
	{Letters: "t", Title: "STATE", Cell: func(_ *table.View, b []byte, s *nodeRow) []byte { return append(b, shortNodeStates[s.state]...) }},
	{Letters: "T", Title: "STATE", Cell: func(_ *table.View, b []byte, s *nodeRow) []byte { return append(b, s.state...) }},
	{Letters: "N", Title: "NODELIST", Cell: func(_ *table.View, b []byte, s *nodeRow) []byte { return append(b, s.names()...) }},
	{Letters: "n", Title: "HOSTNAMES", Cell: func(_ *table.View, b []byte, s *nodeRow) []byte { return append(b, s.names()...) }},
	{Letters: "c", Title: "CPUS", Right: true, Cell: func(_ *table.View, b []byte, s *nodeRow) []byte {
		return s.span(b, func(n api.Node) int64 { return n.CPUs.Total })
	}},
	{Letters: "m", Title: "MEMORY", Right: true, Cell: func(_ *table.View, b []byte, s *nodeRow) []byte {
		return s.span(b, func(n api.Node) int64 { return n.MemBytes.Total >> 20 })
	}},
	{Letters: "e", Title: "FREE_MEM", Right: true, Cell: func(_ *table.View, b []byte, s *nodeRow) []byte {
		return s.span(b, func(n api.Node) int64 { return n.MemBytes.Free >> 20 })
	}},
	{Letters: "G", Title: "GRES", Cell: func(_ *table.View, b []byte, s *nodeRow) []byte {
		if n := s.nodes[0]; len(n.GPUs) > 0 {
			return fmt.Appendf(b, "gpu:%s:%d", strings.ToLower(strings.ReplaceAll(n.GPUs[0].Model, " ", "_")), len(n.GPUs))
		}
		return append(b, "(null)"...)
	}},
	{Letters: "C", Title: "CPUS(A/I/O/T)", Cell: func(_ *table.View, b []byte, s *nodeRow) []byte {
		var used, idle, other, total int64
		for _, n := range s.nodes {
			total += n.CPUs.Total
			used += n.CPUs.Total - n.CPUs.Free
			if n.State == "up" {
				idle += n.CPUs.Free
			} else {
				other += n.CPUs.Free
			}
		}
		return fmt.Appendf(b, "%d/%d/%d/%d", used, idle, other, total)
	}},
	{Letters: "E", Title: "REASON", Cell: func(_ *table.View, b []byte, s *nodeRow) []byte {
		return append(b, cmp.Or(s.nodes[0].Reason, "none")...)
	}},
}

// sinfo lists clusters and nodes.
func sinfo(ctx context.Context, a *cli.App, args []string) error {
	var parts, nodes, states []string
	format, noHeader, each := "", false, false
	rest, err := parse(args, []option{
		listOf(&parts, "-p", "--partition"), listOf(&nodes, "-n", "--nodes"), listOf(&states, "-t", "--states"),
		stringOf(&format, "-o", "--format"), boolOf(&noHeader, "-h", "--noheader"), boolOf(&each, "-N", "--Node"), ignored("-a", "--all", "-e", "--exact"),
		insteadOf("use ginfo, which has columns of its own: ginfo --help", "-O", "--Format", "-l", "--long", "-S", "--sort", "-s", "--summarize", "-i", "--iterate", "-R", "--list-reasons"),
		insteadOf("use ginfo --json", "--json", "--yaml"), insteadOf("choose the controller with GBATCH_CONTROLLER", "-M", "--clusters"),
		insteadOf("use gadm reservations", "-T", "--reservation"), insteadOf("use ginfo", "-d", "--dead", "-r", "--responding"),
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return exit.Usagef("%q is no option", rest[0])
	}
	clusters, err := partitions(parts)
	if err != nil {
		return err
	}
	if format == "" {
		format = "%9P %5a %9l %6D %6t %N"
		if each {
			format = "%N %6D %9P %t"
		}
	}
	form, err := sinfoColumns.Format(format)
	if err != nil {
		return err
	}
	names, err := jobs.ParseNodes(nodes)
	if err != nil {
		return err
	}
	info, err := a.Client.Cluster(ctx)
	if err != nil {
		return err
	}
	var rows []nodeRow
	for _, n := range info.Nodes {
		state := nodeState(&n)
		asked := func(w string) bool {
			return strings.EqualFold(w, state) || strings.EqualFold(w, shortNodeStates[state])
		}
		if len(clusters) > 0 && !slices.Contains(clusters, n.Cluster) || len(names) > 0 && !slices.Contains(names, n.Name) ||
			len(states) > 0 && !slices.ContainsFunc(states, asked) {
			continue
		}
		// Alike are those that the format shows alike, but for their names.
		i := slices.IndexFunc(rows, func(s nodeRow) bool {
			return !each && s.cluster == n.Cluster && s.state == state && sameGPUs(s.nodes[0], n)
		})
		if i < 0 {
			rows = append(rows, nodeRow{cluster: n.Cluster, state: state})
			i = len(rows) - 1
		}
		rows[i].nodes = append(rows[i].nodes, n)
	}
	slices.SortStableFunc(rows, func(x, y nodeRow) int {
		return cmp.Or(cmp.Compare(x.cluster, y.cluster), cmp.Compare(x.state, y.state))
	})
	return form.Write(a.Out, rows, table.View{Now: a.Now(), NoHeader: noHeader})
}

func sameGPUs(a, b api.Node) bool {
	return len(a.GPUs) == len(b.GPUs) && (len(a.GPUs) == 0 || a.GPUs[0].Model == b.GPUs[0].Model)
}
