package info

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
)

// partitions lists the names for nodes, with what is free there and whose jobs they
// take.
func (o *Info) partitions(ctx context.Context, a *cli.App) error {
	info, err := a.Client.Cluster(ctx)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(info.Partitions, func(p api.Partition) bool { return len(o.Clusters) > 0 && !slices.Contains(o.Clusters, p.Name) })
	if a.Output.JSON {
		return a.WriteJSON(struct {
			Partitions []api.Partition `json:"partitions"`
		}{list})
	}
	t := table.New("PARTITION", "STATE", "NODES", "CPUS", "GPUS", "DEFAULT TIME", "LONGEST", "OF A JOB", "FOR").NoHeader(o.NoHeader).Right(3, 4, 5, 6, 7)
	for _, p := range list {
		sum := nodeRow{}
		for i := range info.Nodes {
			if n := &info.Nodes[i]; slices.Contains(p.Nodes, n.Name) {
				sum.add(newNodeRow(n))
			}
		}
		name, state := p.Name, p.State
		if p.Default {
			name += "*"
		}
		if p.Reason != "" {
			state += ": " + p.Reason
		}
		t.Row(name, state, fmt.Sprint(len(sum.names)), useText(sum.cpus), gpuUse(sum.gpusFree, sum.gpusAll), timeText(p.DefaultDurationS), timeText(p.MaxDurationS), boundsText(&p), forText(&p))
	}
	if err := t.Fit(a.Term.Width).Write(a.Out); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if len(list) == 0 && a.Term.Out {
		a.Say("there is no such partition; ginfo lists the nodes with their clusters")
	}
	return nil
}

func timeText(s int64) string {
	if s == 0 {
		return "-"
	}
	return string(human.Duration(nil, s))
}

// boundsText is what one job may have there.
func boundsText(p *api.Partition) string {
	var parts []string
	if p.MinNodes > 1 || p.MaxNodes > 0 {
		most := "any"
		if p.MaxNodes > 0 {
			most = fmt.Sprint(p.MaxNodes)
		}
		parts = append(parts, fmt.Sprintf("%d-%s nodes", max(p.MinNodes, 1), most))
	}
	if p.MaxGPUs > 0 {
		parts = append(parts, fmt.Sprintf("%d GPUs", p.MaxGPUs))
	}
	if p.MaxCPUsPerNode > 0 {
		parts = append(parts, fmt.Sprintf("%d cores/node", p.MaxCPUsPerNode))
	}
	if p.MaxMemPerNode > 0 {
		parts = append(parts, string(human.Size(nil, p.MaxMemPerNode))+"/node")
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// forText is whose jobs it takes.
func forText(p *api.Partition) string {
	var parts []string
	for _, l := range []struct {
		what string
		list []string
	}{{"projects ", p.Projects}, {"not projects ", p.NotProjects}, {"qos ", p.QOS}, {"not qos ", p.NotQOS}} {
		if len(l.list) > 0 {
			parts = append(parts, l.what+strings.Join(l.list, ","))
		}
	}
	if p.Closed {
		parts = append(parts, "other users")
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, "; ")
}
