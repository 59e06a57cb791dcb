package info

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
)

// plan lists what nodes do and are to do, a line for each job or reservation there.
func (o *Info) plan(ctx context.Context, a *cli.App) error {
	info, err := a.Client.Cluster(ctx)
	if err != nil {
		return err
	}
	nodes, err := o.choose(info.Nodes)
	if err != nil {
		return err
	}
	plan, err := client.Plan(ctx, a.Client)
	if err != nil {
		return err
	}
	plan.Nodes = slices.DeleteFunc(plan.Nodes, func(p api.PlanNode) bool {
		return !slices.ContainsFunc(nodes, func(n api.Node) bool { return n.Name == p.Name })
	})
	plan.Total = len(plan.Nodes)
	if a.Output.JSON {
		return a.WriteJSON(plan)
	}
	t := table.New("NODE", "WHAT", "JOB", "USER", "NAME", "FROM", "UNTIL", "GPUS", "CPUS").NoHeader(o.NoHeader).Right(8, 9)
	lines := 0
	for _, n := range plan.Nodes {
		for _, s := range n.Spans {
			t.Row(n.Name, s.Kind, dash(s.Job), dash(s.User), dash(s.Name), momentText(s.Start), momentText(s.End), string(human.Number(nil, s.GPUs)), fmt.Sprint(s.CPUs))
			lines++
		}
	}
	if err := t.Fit(a.Term.Width).Write(a.Out); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if lines == 0 && a.Term.Out {
		a.Say("nothing runs there, and nothing is planned or reserved; ginfo lists the nodes")
	}
	return nil
}

func dash(s string) string { return string(human.OrDash(nil, s)) }

func momentText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(human.ISO)
}
