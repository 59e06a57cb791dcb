package cli

import (
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/api"
)

// nodeColumns are what can be said of a node, or of several that are alike. The
// letters are sinfo's where the meaning is the same.
var nodeColumns = columnSet[nodeRow]{
	{'N', "NAME", false, 8, func(_ *view, b []byte, r *nodeRow) []byte { return append(b, compressHosts(r.names)...) }},
	{'P', "CLUSTER", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, int64(r.cluster), 10) }},
	{'T', "STATE", false, 0, func(_ *view, b []byte, r *nodeRow) []byte { return append(b, r.state...) }},
	{'D', "NODES", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, int64(len(r.names)), 10) }},
	{1, "CPUS", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return append(b, useText(r.cpus)...) }},
	{2, "MEM", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return append(b, memUse(r.mem)...) }},
	{3, "GPUS", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return append(b, gpuUse(r.gpusFree, r.gpusAll)...) }},
	{4, "MODEL", false, 8, func(_ *view, b []byte, r *nodeRow) []byte { return orDash(b, r.model) }},
	{5, "CUDA", false, 0, func(_ *view, b []byte, r *nodeRow) []byte { return orDash(b, r.cuda) }},
	{6, "DRIVER", false, 0, func(_ *view, b []byte, r *nodeRow) []byte { return orDash(b, r.driver) }},
	{7, "JOBS", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, int64(r.jobs), 10) }},
	{'c', "CPUTOTAL", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, r.cpus.Total, 10) }},
	{'m', "MEMTOTAL", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, r.mem.Total>>20, 10) }},
	{'e', "MEMFREE", true, 0, func(_ *view, b []byte, r *nodeRow) []byte { return strconv.AppendInt(b, r.mem.Free>>20, 10) }},
	{'f', "FEATURES", false, 8, func(_ *view, b []byte, r *nodeRow) []byte { return orDash(b, r.features) }},
	{'v', "VERSION", false, 0, func(_ *view, b []byte, r *nodeRow) []byte { return orDash(b, r.version) }},
	{'E', "REASON", false, 10, func(_ *view, b []byte, r *nodeRow) []byte { return orDash(b, r.reason) }},
}

// infoLayout is which columns ginfo shows.
func infoLayout(o InfoOptions) (layout[nodeRow], error) {
	switch {
	case o.Format != "":
		return parseLayout(o.Format, nodeColumns)
	case o.Reasons:
		return layout[nodeRow]{columns: byLetters("NPTE", nodeColumns)}, nil
	}
	return layout[nodeRow]{columns: byLetters("NPT\x01\x02\x03\x04\x05\x07E", nodeColumns)}, nil
}

// nodeRows are the lines of the table of nodes: alike ones share one, but for
// perNode.
func nodeRows(nodes []api.Node, o InfoOptions) []nodeRow {
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

func nodePaint(cell []byte) string {
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
