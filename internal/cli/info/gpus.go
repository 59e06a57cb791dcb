package info

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
)

func gpuTable(nodes []api.Node) *table.Grid {
	t := table.New("NODE", "GPU", "UUID", "MODEL", "MEM", "FREE", "JOB", "UTIL", "USED", "CC", "NUMA", "HEALTH")
	t.Right(2, 5, 6, 7, 8, 9, 10, 11)
	for _, n := range nodes {
		for _, g := range n.GPUs {
			model := g.Model
			if n.Simulated {
				model += " (simulated)"
			}
			t.Row(append([]string{n.Name, strconv.Itoa(g.Index), g.UUID, model}, gpuCells(&g)...)...)
		}
	}
	return t
}

func gpuCells(g *api.GPU) []string {
	holder, util, used, numa := "-", "-", "-", "-"
	if g.Job != 0 {
		holder = strconv.FormatUint(uint64(g.Job), 10)
	}
	if g.Utilization != nil {
		util = fmt.Sprintf("%.0f%%", *g.Utilization)
	}
	if g.MemUsed != nil {
		used = string(human.Size(nil, *g.MemUsed))
	}
	if g.NUMA >= 0 {
		numa = strconv.Itoa(g.NUMA)
	}
	free := string(human.Number(nil, float64(g.FreeMilli)/1000))
	return []string{string(human.Size(nil, g.MemBytes)), free, holder, util, used, cmp.Or(g.ComputeCap, "-"), numa, cmp.Or(g.Unhealthy, "ok")}
}

// printBox is GPULab's `clusters --short`: free/total in each cell, memory in GiB
// with two decimals. Its Workers are the GPUs or, on a node without, the one
// slot that takes jobs.
func printBox(w io.Writer, nodes []api.Node) error {
	rows := [][]string{{"Cluster", "Version", "Host", "Workers", "GPUs", "CPUs", "Memory (GB)"}}
	for i := range nodes {
		n := &nodes[i]
		r := newNodeRow(n)
		host := n.Name
		if n.Simulated {
			host += " (simulated)"
		}
		rows = append(rows, []string{strconv.Itoa(n.Cluster), n.Version, host, workers(n, r), gpuUse(r.gpusFree, r.gpusAll),
			useText(n.CPUs), gib(n.MemBytes.Free) + "/" + gib(n.MemBytes.Total)})
	}
	return box(w, rows, []int{7, 7, 20, 7, 7, 7, 15}, 3)
}

func workers(n *api.Node, r *nodeRow) string {
	all, free := max(r.gpusAll, 1), r.gpusFree/1000
	if r.gpusAll == 0 && n.CPUs.Free > 0 {
		free = 1
	}
	if n.State != "up" {
		free = 0
	}
	return fmt.Sprintf("%d/%d", free, all)
}

func gib(n int64) string { return strconv.FormatFloat(float64(n)/(1<<30), 'f', 2, 64) }

// box draws a table with lines around all cells. Its columns are at least as
// wide as widths says; those from center on, counted from 0, are centred.
func box(w io.Writer, rows [][]string, widths []int, center int) error {
	for r := range rows {
		for i, c := range rows[r] {
			rows[r][i] = human.Clean(c)
			widths[i] = max(widths[i], human.Width(rows[r][i]))
		}
	}
	rule := "+"
	for _, n := range widths {
		rule += strings.Repeat("-", n+2) + "+"
	}
	var b strings.Builder
	b.WriteString(rule + "\n")
	for r, row := range rows {
		for i, c := range row {
			gap := widths[i] - human.Width(c)
			before := 0
			if r > 0 && i >= center {
				before = gap - gap/2
			}
			b.WriteString("| " + strings.Repeat(" ", before) + c + strings.Repeat(" ", gap-before) + " ")
		}
		b.WriteString("|\n")
		if r == 0 {
			b.WriteString(rule + "\n")
		}
	}
	if len(rows) > 1 {
		b.WriteString(rule + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
