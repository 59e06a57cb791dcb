package info

import (
	"fmt"
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
	{Letters: "T", Title: "STATE", Color: stateColor, Cell: func(_ *table.View, b []byte, r *nodeRow) []byte { return append(b, r.state...) }},
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
	shownReasons = "name,cluster,state,reason"
)

// layout is which columns are shown.
func (o *Info) layout() (table.Layout[nodeRow], error) {
	switch {
	case o.Format != "":
		return nodeColumns.Layout(o.Format)
	case o.Reasons:
		return nodeColumns.Columns(shownReasons), nil
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
		strings.Join([]string{r.state, r.model, r.cuda, r.driver, r.features, r.version, r.reason}, "\x00")
}
