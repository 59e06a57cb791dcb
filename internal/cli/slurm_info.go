package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
)

// slurmNodes is a line of sinfo: nodes of one cluster that are alike.
type slurmNodes struct {
	cluster int
	state   string
	nodes   []api.Node
}

func (s *slurmNodes) names() string {
	var names []string
	for _, n := range s.nodes {
		names = append(names, n.Name)
	}
	return compressHosts(names)
}

// span is the least of a number over the nodes, with + where others have more.
func (s *slurmNodes) span(b []byte, of func(api.Node) int64) []byte {
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

// slurmNodeState is a node's state in Slurm's words.
func slurmNodeState(n *api.Node) string {
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

var slurmNodeShort = map[string]string{"down": "down", "draining": "drng", "drained": "drain", "idle": "idle", "allocated": "alloc", "mixed": "mix"}

var sinfoColumns = columnSet[slurmNodes]{
	{'P', "PARTITION", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte { return strconv.AppendInt(b, int64(s.cluster), 10) }},
	{'R', "PARTITION", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte { return strconv.AppendInt(b, int64(s.cluster), 10) }},
	{'a', "AVAIL", false, 0, func(_ *view, b []byte, _ *slurmNodes) []byte { return append(b, "up"...) }},
	{'l', "TIMELIMIT", true, 0, func(_ *view, b []byte, _ *slurmNodes) []byte { return append(b, "n/a"...) }},
	{'D', "NODES", true, 0, func(_ *view, b []byte, s *slurmNodes) []byte { return strconv.AppendInt(b, int64(len(s.nodes)), 10) }},
	{'t', "STATE", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte { return append(b, slurmNodeShort[s.state]...) }},
	{'T', "STATE", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte { return append(b, s.state...) }},
	{'N', "NODELIST", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte { return append(b, s.names()...) }},
	{'n', "HOSTNAMES", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte { return append(b, s.names()...) }},
	{'c', "CPUS", true, 0, func(_ *view, b []byte, s *slurmNodes) []byte {
		return s.span(b, func(n api.Node) int64 { return n.CPUs.Total })
	}},
	{'m', "MEMORY", true, 0, func(_ *view, b []byte, s *slurmNodes) []byte {
		return s.span(b, func(n api.Node) int64 { return n.MemBytes.Total >> 20 })
	}},
	{'e', "FREE_MEM", true, 0, func(_ *view, b []byte, s *slurmNodes) []byte {
		return s.span(b, func(n api.Node) int64 { return n.MemBytes.Free >> 20 })
	}},
	{'G', "GRES", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte {
		if n := s.nodes[0]; len(n.GPUs) > 0 {
			return fmt.Appendf(b, "gpu:%s:%d", strings.ToLower(strings.ReplaceAll(n.GPUs[0].Model, " ", "_")), len(n.GPUs))
		}
		return append(b, "(null)"...)
	}},
	{'C', "CPUS(A/I/O/T)", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte {
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
	{'E', "REASON", false, 0, func(_ *view, b []byte, s *slurmNodes) []byte {
		return append(b, firstWord(s.nodes[0].Reason, "none")...)
	}},
}

// sinfo lists clusters and nodes.
func sinfo(ctx context.Context, a *App, args []string) error {
	var parts, nodes, states []string
	format, noHeader, each := "", false, false
	rest, err := slurmFlags(args, []slurmFlag{
		listOf(&parts, "-p", "--partition"), listOf(&nodes, "-n", "--nodes"), listOf(&states, "-t", "--states"),
		stringOf(&format, "-o", "--format"), boolOf(&noHeader, "-h", "--noheader"), boolOf(&each, "-N", "--Node"), ignoredFlag("-a", "--all", "-e", "--exact"),
		insteadOf("use ginfo, which has columns of its own: ginfo --help", "-O", "--Format", "-l", "--long", "-S", "--sort", "-s", "--summarize", "-i", "--iterate", "-R", "--list-reasons"),
		insteadOf("use ginfo --json", "--json", "--yaml"), insteadOf("choose the controller with GBATCH_CONTROLLER", "-M", "--clusters"),
		insteadOf("use gadm reservations", "-T", "--reservation"), insteadOf("use ginfo", "-d", "--dead", "-r", "--responding"),
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("%q is no option", rest[0])
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
	fields, err := parseFormat(format, sinfoColumns)
	if err != nil {
		return err
	}
	var names []string
	for _, w := range nodes {
		more, err := expandHosts(w)
		if err != nil {
			return err
		}
		names = append(names, more...)
	}
	info, err := a.Client.Cluster(ctx)
	if err != nil {
		return err
	}
	var rows []slurmNodes
	for _, n := range info.Nodes {
		state := slurmNodeState(&n)
		asked := func(w string) bool { return strings.EqualFold(w, state) || strings.EqualFold(w, slurmNodeShort[state]) }
		if len(clusters) > 0 && !slices.Contains(clusters, n.Cluster) || len(names) > 0 && !slices.Contains(names, n.Name) ||
			len(states) > 0 && !slices.ContainsFunc(states, asked) {
			continue
		}
		// Alike are those that the format shows alike, but for their names.
		i := slices.IndexFunc(rows, func(s slurmNodes) bool {
			return !each && s.cluster == n.Cluster && s.state == state && sameGPUs(s.nodes[0], n)
		})
		if i < 0 {
			rows = append(rows, slurmNodes{cluster: n.Cluster, state: state})
			i = len(rows) - 1
		}
		rows[i].nodes = append(rows[i].nodes, n)
	}
	slices.SortStableFunc(rows, func(x, y slurmNodes) int {
		return cmp.Or(cmp.Compare(x.cluster, y.cluster), cmp.Compare(x.state, y.state))
	})
	return writeFormat(a.Out, fields, rows, &view{now: a.Now()}, !noHeader)
}

func sameGPUs(a, b api.Node) bool {
	return len(a.GPUs) == len(b.GPUs) && (len(a.GPUs) == 0 || a.GPUs[0].Model == b.GPUs[0].Model)
}
