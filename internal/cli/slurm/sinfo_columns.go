package slurm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
)

// nodeRow is a line of sinfo: nodes of one partition that are shown alike.
type nodeRow struct {
	part  *partitionInfo
	nodes []api.Node
}

func (s *nodeRow) names() string {
	var names []string
	for _, n := range s.nodes {
		names = append(names, n.Name)
	}
	return human.Hosts(names)
}

// span is the least of a number over the nodes, with + where others have more.
func (s *nodeRow) span(of func(*api.Node) int64) string {
	least, most := of(&s.nodes[0]), of(&s.nodes[0])
	for i := range s.nodes {
		least, most = min(least, of(&s.nodes[i])), max(most, of(&s.nodes[i]))
	}
	return strconv.FormatInt(least, 10) + pick(most > least, "+", "")
}

// counts are how many of something are in use, idle, out of service, and in all.
func (s *nodeRow) counts(of func(*api.Node) (total, free int64)) (out [4]int64) {
	for i := range s.nodes {
		n := &s.nodes[i]
		total, free := of(n)
		out[0] += total - free
		out[3] += total
		if n.State == "up" {
			out[1] += free
		} else {
			out[2] += free
		}
	}
	return out
}

func byCPUs(n *api.Node) (total, free int64) { return n.CPUs.Total, n.CPUs.Free }

func byNodes(n *api.Node) (total, free int64) {
	if n.Jobs > 0 {
		return 1, 0
	}
	return 1, 1
}

func slashes(n ...int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(n), " ", "/"), "[]")
}

type nodeColumn = table.Column[nodeRow]

func nodeCol(letters, names, title string, cell func(s *nodeRow) string) nodeColumn {
	key, also, _ := strings.Cut(names, " ")
	return nodeColumn{Key: key, Also: also, Letters: letters, Title: title, Cell: func(_ *table.View, b []byte, s *nodeRow) []byte { return append(b, cell(s)...) }}
}

// first is a cell that is the same of all nodes of a line.
func first(of func(n *api.Node) string) func(*nodeRow) string {
	return func(s *nodeRow) string { return of(&s.nodes[0]) }
}

func nodeConst(text string) func(*nodeRow) string { return func(*nodeRow) string { return text } }

// tellsApart are the columns by which nodes are on lines of their own, where they
// are shown.
var tellsApart = []string{"partition", "partitionname", "statecompact", "statelong", "statecomplete", "gres", "gresused", "features", "features_act", "reason", "version", "nodehost"}

// sinfoColumns are sinfo's, by Slurm's letters and long names.
var sinfoColumns = table.Set[nodeRow]{
	nodeCol("P", "partition", "PARTITION", func(s *nodeRow) string { return human.Clean(s.part.Name) + pick(s.part.usual, "*", "") }),
	nodeCol("R", "partitionname", "PARTITION", func(s *nodeRow) string { return human.Clean(s.part.Name) }),
	nodeCol("a", "available", "AVAIL", func(s *nodeRow) string { return pick(s.part.State == "inactive", "inact", s.part.State) }),
	nodeCol("l", "time", "TIMELIMIT", func(s *nodeRow) string { return timeOr(s.part.maxTime, "infinite") }),
	nodeCol("L", "defaulttime", "DEFAULTTIME", func(s *nodeRow) string { return timeOr(s.part.defTime, "n/a") }),
	nodeCol("D", "nodes", "NODES", func(s *nodeRow) string { return fmt.Sprint(len(s.nodes)) }),
	nodeCol("t", "statecompact", "STATE", first(func(n *api.Node) string { return shortNodeState(nodeState(n)) })),
	nodeCol("T", "statelong", "STATE", first(nodeState)),
	nodeCol("", "statecomplete", "STATECOMPLETE", first(func(n *api.Node) string { return strings.ToLower(longNodeState(n)) })),
	nodeCol("N", "nodelist", "NODELIST", (*nodeRow).names),
	nodeCol("n", "nodehost", "HOSTNAMES", first(func(n *api.Node) string { return cmp.Or(n.Hostname, n.Name) })),
	nodeCol("o", "nodeaddr", "NODE_ADDR", first(func(n *api.Node) string { return cmp.Or(n.Hostname, n.Name) })),
	nodeCol("c", "cpus", "CPUS", func(s *nodeRow) string { return s.span(func(n *api.Node) int64 { return n.CPUs.Total }) }),
	nodeCol("m", "memory", "MEMORY", func(s *nodeRow) string { return s.span(func(n *api.Node) int64 { return n.MemBytes.Total >> 20 }) }),
	nodeCol("e", "freemem", "FREE_MEM", func(s *nodeRow) string { return s.span(func(n *api.Node) int64 { return n.MemBytes.Free >> 20 }) }),
	nodeCol("", "allocmem", "ALLOCMEM", func(s *nodeRow) string {
		return s.span(func(n *api.Node) int64 { return (n.MemBytes.Total - n.MemBytes.Free) >> 20 })
	}),
	nodeCol("G", "gres", "GRES", first(func(n *api.Node) string { return cmp.Or(gres(n), none) })),
	nodeCol("", "gresused", "GRES_USED", first(gresUsed)),
	nodeCol("C", "cpusstate", "CPUS(A/I/O/T)", func(s *nodeRow) string { c := s.counts(byCPUs); return slashes(c[:]...) }),
	nodeCol("A", "nodeai", "NODES(A/I)", func(s *nodeRow) string { c := s.counts(byNodes); return slashes(c[0], c[1]) }),
	nodeCol("F", "nodeaiot", "NODES(A/I/O/T)", func(s *nodeRow) string { c := s.counts(byNodes); return slashes(c[:]...) }),
	nodeCol("E", "reason", "REASON", first(func(n *api.Node) string { return cmp.Or(n.Reason, "none") })),
	nodeCol("u", "user", "USER", nodeConst("Unknown")), nodeCol("U", "userlong", "USER", nodeConst("Unknown")), nodeCol("H", "timestamp", "TIMESTAMP", nodeConst("Unknown")),
	nodeCol("f", "features", "AVAIL_FEATURES", first(featureList)), nodeCol("b", "features_act", "ACTIVE_FEATURES", first(featureList)),
	nodeCol("O", "cpusload", "CPU_LOAD", nodeConst("N/A")),
	nodeCol("X", "sockets", "SOCKETS", nodeConst("1")), nodeCol("Y", "cores", "CORES", func(s *nodeRow) string { return s.span(func(n *api.Node) int64 { return n.CPUs.Total }) }),
	nodeCol("Z", "threads", "THREADS", nodeConst("1")),
	nodeCol("z", "socketcorethread", "S:C:T", func(s *nodeRow) string {
		return "1:" + s.span(func(n *api.Node) int64 { return n.CPUs.Total }) + ":1"
	}),
	nodeCol("w", "weight", "WEIGHT", nodeConst("1")), nodeCol("d", "disk", "TMP_DISK", nodeConst("0")), nodeCol("s", "size", "JOB_SIZE", func(s *nodeRow) string {
		return fmt.Sprintf("%d-%s", max(s.part.MinNodes, 1), bound(s.part.MaxNodes, "infinite"))
	}),
	nodeCol("r", "root", "ROOT", nodeConst("no")), nodeCol("h", "oversubscribe share", "OVERSUBSCRIBE", nodeConst("NO")), nodeCol("g", "groups", "GROUPS", nodeConst("all")),
	nodeCol("p", "prioritytier priorityjobfactor", "PRIO_TIER", nodeConst("1")), nodeCol("M", "preemptmode", "PREEMPT_MODE", nodeConst("OFF")),
	nodeCol("I", "prioritypartition", "PRIO_JOB_FACTOR", func(s *nodeRow) string { return bound(s.part.Priority, "1") }), nodeCol("B", "maxcpuspernode", "MAX_CPUS_PER_NODE", func(s *nodeRow) string { return bound(s.part.MaxCPUsPerNode, "UNLIMITED") }),
	nodeCol("S", "allocnodes", "ALLOCNODES", nodeConst("all")),
	nodeCol("v", "version", "VERSION", first(func(n *api.Node) string { return n.Version })),
	nodeCol("", "comment", "COMMENT", nodeConst(none)), nodeCol("", "extra", "EXTRA", nodeConst(none)), nodeCol("", "port", "PORT", nodeConst("0")),
	nodeCol("V", "cluster", "CLUSTER", nodeConst(clusterName)),
}

func timeOr(secs int64, absent string) string {
	if secs == 0 {
		return absent
	}
	return string(human.Duration(nil, secs))
}

func featureList(n *api.Node) string { return cmp.Or(strings.Join(n.Features, ","), none) }
