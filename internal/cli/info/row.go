package info

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
)

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
