package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// InfoOptions are what ginfo shows and how.
type InfoOptions struct {
	Short    bool // GPULab's box
	PerNode  bool // a line for each node, alike or not
	GPUs     bool // a line for each GPU
	Reasons  bool // only nodes that something is wrong with
	Format   string
	NoHeader bool
	Interval time.Duration // show it live, drawn that often; 0: once
	Clusters []int
	Nodes    []string
}

// Info prints the nodes and what is free on them.
func (a *App) Info(ctx context.Context, o InfoOptions) error {
	form, err := infoLayout(o)
	if err != nil {
		return err
	}
	var nodes []api.Node
	fetch := func() error {
		info, err := a.Client.Cluster(ctx)
		if err != nil {
			return err
		}
		nodes, err = chooseNodes(info.Nodes, o)
		return err
	}
	draw := func() error { return a.info(nodes, o, form) }
	if o.Interval > 0 {
		return a.live(ctx, client.EventFilter{Nodes: true}, o.Interval, fetch, draw)
	}
	if err := fetch(); err != nil {
		return err
	}
	return draw()
}

func (a *App) info(nodes []api.Node, o InfoOptions, form layout[nodeRow]) error {
	var err error
	switch {
	case a.Output.JSON:
		return a.writeJSON(api.ClusterInfo{Nodes: nodes})
	case o.Short:
		return render(a.Out, shortTable(nodes), "")
	case o.GPUs:
		t := gpuTable(nodes)
		if o.NoHeader {
			t.ResetHeaders()
		}
		err = render(a.Out, t, "")
	default:
		err = form.write(a, nodeRows(nodes, o), &view{now: a.Now()}, !o.NoHeader, map[byte]func([]byte) string{'T': nodePaint})
	}
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if len(nodes) == 0 && a.Term.Out {
		a.say("no node has joined yet; start gnoded on one, or try `gctld dev`")
	}
	return nil
}

// chooseNodes filters and sorts by cluster and name.
func chooseNodes(nodes []api.Node, o InfoOptions) ([]api.Node, error) {
	var names []string
	for _, list := range o.Nodes {
		more, err := expandHosts(list)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	for _, name := range names {
		if !slices.ContainsFunc(nodes, func(n api.Node) bool { return n.Name == name }) {
			return nil, &exitError{ExitNotFound, fmt.Errorf("no node is called %q; ginfo lists them", name)}
		}
	}
	out := []api.Node{}
	for _, n := range nodes {
		if (len(o.Clusters) == 0 || slices.Contains(o.Clusters, n.Cluster)) && (len(names) == 0 || slices.Contains(names, n.Name)) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(x, y api.Node) int {
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), strings.Compare(x.Name, y.Name))
	})
	return out, nil
}

// nodeRow is a line of the node table: one node, or several alike.
type nodeRow struct {
	names             []string
	key               string // equal for nodes that are alike
	state, model      string
	reason, cuda      string
	driver, version   string
	features          string
	cluster, jobs     int
	cpus, mem         api.Use
	gpusFree, gpusAll int64 // free in thousandths, all in GPUs
}

func newNodeRow(n *api.Node) *nodeRow {
	r := &nodeRow{names: []string{n.Name}, state: n.State, model: models(n), reason: n.Reason, cuda: n.CUDA, driver: n.Driver, version: n.Version, features: strings.Join(n.Features, ","),
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

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func useText(u api.Use) string { return fmt.Sprintf("%d/%d", u.Free, u.Total) }

func memUse(u api.Use) string {
	free := "0"
	if u.Free > 0 {
		free = string(sizeText(nil, u.Free))
	}
	return free + "/" + string(sizeText(nil, u.Total))
}

func gpuUse(freeMilli, all int64) string {
	return fmt.Sprintf("%s/%d", number(nil, float64(freeMilli)/1000), all)
}

func gpuTable(nodes []api.Node) table.Writer {
	t := newTable("NODE", "GPU", "UUID", "MODEL", "MEM", "FREE", "JOB", "UTIL", "USED", "CC", "NUMA", "HEALTH")
	alignRight(t, 2, 5, 6, 7, 8, 9, 10, 11)
	for _, n := range nodes {
		for _, g := range n.GPUs {
			model := g.Model
			if n.Simulated {
				model += " (simulated)"
			}
			t.AppendRow(toRow(append([]string{n.Name, strconv.Itoa(g.Index), g.UUID, model}, gpuCells(&g)...)))
		}
	}
	return t
}

func gpuCells(g *api.GPU) []string {
	holder, util, used, numa, health := "-", "-", "-", "-", "ok"
	if g.Job != 0 {
		holder = strconv.FormatUint(uint64(g.Job), 10)
	}
	if g.Utilization != nil {
		util = fmt.Sprintf("%.0f%%", *g.Utilization)
	}
	if g.MemUsed != nil {
		used = string(sizeText(nil, *g.MemUsed))
	}
	if g.NUMA >= 0 {
		numa = strconv.Itoa(g.NUMA)
	}
	if g.Unhealthy != "" {
		health = g.Unhealthy
	}
	free := string(number(nil, float64(g.FreeMilli)/1000))
	return []string{string(sizeText(nil, g.MemBytes)), free, holder, util, used, dash(g.ComputeCap), numa, health}
}

// shortTable is GPULab's `clusters --short`: free/total in each cell, memory
// in GiB with two decimals. Its Workers are the GPUs or, on a node without,
// the one slot that takes jobs.
func shortTable(nodes []api.Node) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(table.Row{"Cluster", "Version", "Host", "Workers", "GPUs", "CPUs", "Memory (GB)"})
	configs := make([]table.ColumnConfig, 7)
	for i, width := range []int{7, 7, 20, 7, 7, 7, 15} {
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMin: width, Align: text.AlignLeft, AlignHeader: text.AlignLeft}
		if i >= 3 {
			configs[i].Align = text.AlignCenter
		}
	}
	t.SetColumnConfigs(configs)
	for i := range nodes {
		n := &nodes[i]
		r := newNodeRow(n)
		host := n.Name
		if n.Simulated {
			host += " (simulated)"
		}
		t.AppendRow(toRow([]string{strconv.Itoa(n.Cluster), n.Version, host, workers(n, r), gpuUse(r.gpusFree, r.gpusAll),
			useText(n.CPUs), fmt.Sprintf("%s/%s", gib(n.MemBytes.Free), gib(n.MemBytes.Total))}))
	}
	return t
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
