package queue

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
)

// Explain is gqueue explain.
type Explain struct {
	IDs []string `arg:"" name:"id" help:"Numbers, UUIDs or the beginning of a UUID."`
}

// Words takes arguments of which none is a flag, if there are any.
func (o *Explain) Words(ids []string) bool {
	if len(ids) > 0 {
		o.IDs = ids
	}
	return len(ids) > 0
}

// Run prints why jobs wait and what would help.
func (o *Explain) Run(ctx context.Context, a *cli.App) error {
	return a.Each(o.IDs, func(id string) error {
		e, err := a.Client.Explain(ctx, id)
		switch {
		case err != nil:
			return err
		case a.Output.JSON:
			return a.WriteJSON(e)
		case a.Output.IDs:
			_, err = fmt.Fprintln(a.Out, explainedID(e))
			return err
		}
		return explain(a, e)
	})
}

func explainedID(e *api.Explanation) string { return cmp.Or(e.ID, fmt.Sprint(e.Number)) }

func explain(a *cli.App, e *api.Explanation) error {
	f := table.NewFields()
	f.Add("Job", fmt.Sprintf("%s is %s", explainedID(e), e.State))
	if !e.State.Pending() && len(e.Reasons) == 0 {
		f.Add("Waits", "no; see gqueue show "+explainedID(e))
		return f.Fold(a.Term.Width).Write(a.Out)
	}
	var why []string
	for _, r := range e.Reasons {
		text := r.Code + ": " + r.Text
		if !r.At.IsZero() {
			text += " (until " + a.Moment(r.At) + ")"
		}
		why = append(why, text)
	}
	f.Add("Waits for", strings.Join(why, "\n"))
	if e.Estimate != nil {
		f.Add("Start", jobs.Estimate(a.View(), e.Estimate))
	}
	if p := e.Priority; p != nil {
		f.Add("Priority", priorityText(p))
	}
	f.Add("Before it", beforeText(e))
	var advice []string
	for _, ad := range e.Advice {
		advice = append(advice, adviceText(a, &ad))
	}
	f.Add("Sooner", strings.Join(advice, "\n"))
	if err := f.Fold(a.Term.Width).Write(a.Out); err != nil || len(e.Nodes) == 0 {
		return err
	}
	fmt.Fprintln(a.Out, "\nNodes")
	return nodesTable(a, e.Nodes).Indent("  ").Fold(a.Term.Width).Write(a.Out)
}

// priorityText is a priority with its terms.
func priorityText(p *api.Priority) string {
	s := fmt.Sprintf("%d: age %d, fair share %d, size %d, QOS %d, adjustment %d", p.Total, p.Age, p.FairShare, p.Size, p.QOS, p.User)
	if p.Partition != 0 {
		s += fmt.Sprintf(", partition %d", p.Partition)
	}
	if p.Slowdown != 0 {
		s += fmt.Sprintf(", slowdown %d", p.Slowdown)
	}
	if p.Small != 0 {
		s += fmt.Sprintf(", small %d", p.Small)
	}
	if p.Boosted {
		s += "; it has waited so long that it goes before all others"
	}
	return s
}

// beforeText says how many jobs go first, and names those that matter to its nodes.
func beforeText(e *api.Explanation) string {
	if e.Position <= 1 && e.NBefore == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of the %d in the queue", max(e.Position-1, e.NBefore), e.NumQueued)
	if e.NBefore == 0 {
		return text + "; none of them is planned for nodes that it could use"
	}
	var names []string
	for _, n := range e.Before {
		names = append(names, strconv.FormatUint(uint64(n), 10))
	}
	text += fmt.Sprintf("; %d planned for nodes that it could use: %s", e.NBefore, strings.Join(names, ", "))
	if more := e.NBefore - len(e.Before); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func adviceText(a *cli.App, ad *api.Advice) string {
	text := ad.Change
	switch {
	case ad.Text != "":
		return text + ": " + ad.Text
	case ad.Now:
		text += ": would start now"
	case !ad.At.IsZero():
		text += ": would start " + a.Moment(ad.At)
	}
	if len(ad.Nodes) > 0 {
		text += " on " + human.Hosts(ad.Nodes)
	}
	return text
}

// nodesTable is the table of what the job finds on each node; nodes where it
// finds the same share a line.
func nodesTable(a *cli.App, nodes []api.NodeVerdict) *table.Grid {
	t := table.New("NODES", "FREE GPUS", "CPUS", "MEM", "ROOM", "WHY NOT")
	t.Right(2, 3, 4)
	var order []api.NodeVerdict
	names := map[api.NodeVerdict][]string{}
	for _, n := range nodes {
		key := n
		key.Node = ""
		if names[key] == nil {
			order = append(order, key)
		}
		names[key] = append(names[key], n.Node)
	}
	for _, n := range order {
		room, why := "now", "-"
		switch {
		case n.Code == "" && strings.HasPrefix(n.Text, "group "):
			why = n.Text // which of its groups have room, and which not
		case n.Code != "":
			room, why = a.Moment(n.At), strings.TrimSuffix(n.Code+": "+n.Text, ": ")
		}
		t.Row(human.Hosts(names[n]), string(human.Number(nil, n.FreeGPUs)), strconv.Itoa(n.FreeCPUs), string(human.Size(nil, n.FreeMem)), room, why)
	}
	return t
}
