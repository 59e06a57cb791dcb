package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"gbatch/internal/api"
)

// Explain prints why jobs wait and what would help.
func (a *App) Explain(ctx context.Context, ids []string) error {
	return a.each(ids, func(id string) error {
		e, err := a.Client.Explain(ctx, id)
		switch {
		case err != nil:
			return err
		case a.Output.JSON:
			return a.writeJSON(e)
		case a.Output.IDs:
			_, err = fmt.Fprintln(a.Out, explainedID(e))
			return err
		}
		return a.explain(e)
	})
}

func explainedID(e *api.Explanation) string {
	if e.ID != "" {
		return e.ID
	}
	return strconv.FormatUint(uint64(e.Number), 10)
}

func (a *App) explain(e *api.Explanation) error {
	f := newFields()
	f.add("Job", fmt.Sprintf("%s is %s", explainedID(e), e.State))
	if !e.State.Pending() && len(e.Reasons) == 0 {
		f.add("Waits", "no; see gqueue show "+explainedID(e))
		return render(a.Out, f.t, "")
	}
	var why []string
	for _, r := range e.Reasons {
		text := r.Code + ": " + r.Text
		if !r.At.IsZero() {
			text += " (until " + a.moment(r.At) + ")"
		}
		why = append(why, text)
	}
	f.add("Waits for", strings.Join(why, "\n"))
	if e.Estimate != nil {
		f.add("Start", a.estimate(e.Estimate))
	}
	if p := e.Priority; p != nil {
		f.add("Priority", priorityText(p))
	}
	f.add("Before it", beforeText(e))
	var advice []string
	for _, ad := range e.Advice {
		advice = append(advice, a.advice(&ad))
	}
	f.add("Sooner", strings.Join(advice, "\n"))
	if err := render(a.Out, f.t, ""); err != nil || len(e.Nodes) == 0 {
		return err
	}
	fmt.Fprintln(a.Out, "\nNodes")
	return render(a.Out, a.verdicts(e.Nodes), "  ")
}

// priorityText is a priority with its terms.
func priorityText(p *api.Priority) string {
	s := fmt.Sprintf("%d: age %d, fair share %d, size %d, QOS %d, adjustment %d", p.Total, p.Age, p.FairShare, p.Size, p.QOS, p.User)
	if p.Slowdown != 0 {
		s += fmt.Sprintf(", slowdown %d", p.Slowdown)
	}
	if p.Small != 0 {
		s += fmt.Sprintf(", small %d", p.Small)
	}
	if p.Boosted {
		s += "; it has waited so long that it goes before all that have not"
	}
	return s
}

// beforeText names the jobs that go first.
func beforeText(e *api.Explanation) string {
	if e.NBefore == 0 {
		return ""
	}
	var names []string
	for _, n := range e.Before {
		names = append(names, strconv.FormatUint(uint64(n), 10))
	}
	text := "jobs " + strings.Join(names, ", ")
	if more := e.NBefore - len(e.Before); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (a *App) advice(ad *api.Advice) string {
	text := ad.Change
	switch {
	case ad.Text != "":
		return text + ": " + ad.Text
	case ad.Now:
		text += ": would start now"
	case !ad.At.IsZero():
		text += ": would start " + a.moment(ad.At)
	}
	if len(ad.Nodes) > 0 {
		text += " on " + compressHosts(ad.Nodes)
	}
	return text
}

// verdicts is the table of what the job finds on each node; nodes where it
// finds the same share a line.
func (a *App) verdicts(nodes []api.NodeVerdict) table.Writer {
	t := newTable("NODES", "FREE GPUS", "CPUS", "MEM", "ROOM", "WHY NOT")
	alignRight(t, 2, 3, 4)
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
		if n.Code != "" {
			room, why = a.moment(n.At), strings.TrimSuffix(n.Code+": "+n.Text, ": ")
		}
		t.AppendRow(toRow([]string{compressHosts(names[n]), string(number(nil, n.FreeGPUs)), strconv.Itoa(n.FreeCPUs), string(sizeText(nil, n.FreeMem)), room, why}))
	}
	return t
}
