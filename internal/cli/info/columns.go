package info

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
)

// nodeColumns are what can be said of a node, or of several that are alike. The
// letters are sinfo's where the meaning is the same.
var nodeColumns = table.Set[nodeRow]{
	{Letters: "N", Title: "NAME", Least: 8, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return append(b, human.Hosts(r.names)...) }},
	{Letters: "P", Title: "CLUSTER", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, int64(r.cluster), 10) }},
	{Title: "PARTITION", Least: 8, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return human.OrDash(b, short(r.partitions)) }},
	{Letters: "T", Title: "STATE", Color: stateColor, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return append(b, r.state...) }},
	{Letters: "t", Title: "ST", Color: stateColor, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return append(b, r.short()...) }},
	{Letters: "D", Title: "NODES", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, int64(len(r.names)), 10) }},
	{Title: "CPUS", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return append(b, useText(r.cpus)...) }},
	{Title: "MEM", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return append(b, memUse(r.mem)...) }},
	{Title: "GPUS", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return append(b, gpuUse(r.gpusFree, r.gpusAll)...) }},
	{Title: "MODEL", Least: 8, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return human.OrDash(b, r.model) }},
	{Title: "CUDA", Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return human.OrDash(b, r.cuda) }},
	{Title: "DRIVER", Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return human.OrDash(b, r.driver) }},
	{Title: "JOBS", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, int64(r.jobs), 10) }},
	{Letters: "c", Title: "CPUTOTAL", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, r.cpus.Total, 10) }},
	{Letters: "m", Title: "MEMTOTAL", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, r.mem.Total>>20, 10) }},
	{Letters: "e", Title: "MEMFREE", Right: true, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, r.mem.Free>>20, 10) }},
	{Letters: "f", Title: "FEATURES", Least: 8, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return human.OrDash(b, r.features) }},
	{Letters: "v", Title: "VERSION", Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return human.OrDash(b, r.version) }},
	{Letters: "E", Title: "REASON", Least: 10, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return human.OrDash(b, r.reason) }},
}

// The columns of the lists, by name.
const (
	shown        = "name,cluster,state,cpus,mem,gpus,model,cuda,jobs,reason"
	shownParts   = "name,cluster,partition,state,cpus,mem,gpus,model,cuda,jobs,reason"
	shownReasons = "name,cluster,state,reason"
)

// layout is which columns are shown; parts says that nodes are in partitions.
func (o *Info) layout(parts bool) (table.Layout[nodeRow], error) {
	switch {
	case o.Format != "":
		return nodeColumns.Layout(o.Format)
	case o.Reasons:
		return nodeColumns.Columns(shownReasons), nil
	}
	if parts {
		return nodeColumns.Columns(shownParts), nil
	}
	return nodeColumns.Columns(shown), nil
}

// rows are the lines of the table of nodes: alike ones share one, but for
// perNode.
func (o *Info) rows(nodes []api.Node) []nodeRow {
	var rows []*nodeRow
	byKey := map[string]*nodeRow{}
	for i := range nodes {
		r := newNodeRow(&nodes[i])
		if o.Reasons && r.reason == "" {
			continue
		}
		if first := byKey[r.key]; first != nil && !o.PerNode {
			first.add(r)
			continue
		}
		byKey[r.key] = r
		rows = append(rows, r)
	}
	out := make([]nodeRow, len(rows))
	for i, r := range rows {
		out[i] = *r
	}
	return out
}

// stateColor is red for all that takes no jobs.
func stateColor(cell []byte) string {
	if string(cell) != "up" {
		return "\x1b[31m"
	}
	return ""
}

// alike is equal for nodes that are alike.
func (r *nodeRow) alike() string {
	return fmt.Sprint(r.cluster, r.cpus.Total, r.mem.Total, r.gpusAll) + "\x00" +
		strings.Join([]string{r.state, r.model, r.cuda, r.driver, r.features, r.partitions, r.version, r.reason}, "\x00")
}

// nodeRow is a line of the node table: one node, or several alike.
type nodeRow struct {
	names             []string
	key               string // equal for nodes that are alike
	state, model      string
	reason, cuda      string
	driver, version   string
	features          string
	partitions        string
	cluster, jobs     int
	cpus, mem         api.Use
	gpusFree, gpusAll int64 // free in thousandths, all in GPUs
}

// stateOf is the state of a node: one that is drained and has jobs is draining.
func stateOf(n *api.Node) string {
	if n.State == "drained" && n.Jobs > 0 {
		return "draining"
	}
	return n.State
}

// short is the state as Slurm shortens it.
func (r *nodeRow) short() string {
	use := "mix"
	switch {
	case r.jobs == 0:
		use = "idle"
	case r.cpus.Free == 0:
		use = "alloc"
	}
	switch r.state {
	case "up":
		return use
	case "suspect":
		return use + "*"
	case "lost":
		return "down*"
	}
	if r.jobs > 0 {
		return "drng"
	}
	return "drain"
}

// listWidth is how much of a list of names is shown in a line of the table.
const listWidth = 24

// short is a list of names as far as listWidth goes, the first at least, and how many
// more there are: one node may be in all partitions of a site.
func short(list string) string {
	if len(list) <= listWidth {
		return list
	}
	shown := max(strings.LastIndexByte(list[:listWidth], ','), 0)
	if shown == 0 {
		shown = strings.IndexByte(list, ',')
	}
	if shown < 0 { // one long name
		return list
	}
	return fmt.Sprintf("%s,+%d", list[:shown], strings.Count(list[shown:], ","))
}

func newNodeRow(n *api.Node) *nodeRow {
	r := &nodeRow{names: []string{n.Name}, state: stateOf(n), model: models(n), reason: n.Reason, cuda: n.CUDA, driver: n.Driver, version: n.Version, features: strings.Join(n.Features, ","), partitions: strings.Join(n.Partitions, ","),
		cluster: n.Cluster, jobs: n.Jobs, cpus: n.CPUs, mem: n.MemBytes, gpusAll: int64(len(n.GPUs))}
	var sick []string
	for _, g := range n.GPUs {
		if g.Unhealthy != "" {
			sick = append(sick, fmt.Sprintf("GPU %d: %s", g.Index, g.Unhealthy))
			continue
		}
		r.gpusFree += g.FreeMilli
	}
	if s := n.SkewMS; s != 0 {
		way := "ahead"
		if s < 0 {
			s, way = -s, "behind"
		}
		sick = append(sick, fmt.Sprintf("its clock is %d s %s: run NTP there", s/1000, way))
	}
	if len(sick) > 0 {
		r.reason = strings.TrimPrefix(r.reason+"; "+strings.Join(sick, "; "), "; ")
	}
	r.key = r.alike()
	return r
}

func (r *nodeRow) add(o *nodeRow) {
	r.names = append(r.names, o.names...)
	r.jobs += o.jobs
	r.cpus = api.Use{Total: r.cpus.Total + o.cpus.Total, Free: r.cpus.Free + o.cpus.Free}
	r.mem = api.Use{Total: r.mem.Total + o.mem.Total, Free: r.mem.Free + o.mem.Free}
	r.gpusFree += o.gpusFree
	r.gpusAll += o.gpusAll
}

// models names the kinds of GPU of a node, and says so when they are pretended.
func models(n *api.Node) string {
	var kinds []string
	for _, g := range n.GPUs {
		if !slices.Contains(kinds, g.Model) {
			kinds = append(kinds, g.Model)
		}
	}
	if n.Simulated {
		kinds = append(kinds, "(simulated)")
	}
	return strings.ReplaceAll(strings.Join(kinds, ", "), ", (", " (")
}

func useText(u api.Use) string { return fmt.Sprintf("%d/%d", u.Free, u.Total) }

func memUse(u api.Use) string {
	free := "0"
	if u.Free > 0 {
		free = string(human.Size(nil, u.Free))
	}
	return free + "/" + string(human.Size(nil, u.Total))
}

func gpuUse(freeMilli, all int64) string {
	return fmt.Sprintf("%s/%d", human.Number(nil, float64(freeMilli)/1000), all)
}
