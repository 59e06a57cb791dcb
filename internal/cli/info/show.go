package info

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
)

// showNodes prints all that is known of some nodes.
func (o *Info) showNodes(ctx context.Context, a *cli.App) error {
	if o.Short || o.PerNode || o.GPUs || o.Reasons || o.Format != "" || o.Watch || o.Interval > 0 || len(o.Clusters) > 0 || len(o.Nodes) > 0 {
		return exit.Usagef("a NODE is shown whole: leave out the flags that choose nodes, columns or views, or name it by -n")
	}
	names, err := jobs.ParseNodes(o.Node)
	if err != nil {
		return err
	}
	var list []*api.NodeDetail
	for _, name := range names {
		n, err := a.Client.Node(ctx, name)
		if err != nil {
			return err
		}
		list = append(list, n)
	}
	if a.Output.JSON {
		return a.WriteJSON(struct {
			Nodes []*api.NodeDetail `json:"nodes"`
		}{list})
	}
	for i, n := range list {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if err := showNode(a, n); err != nil {
			return err
		}
	}
	return nil
}

func showNode(a *cli.App, n *api.NodeDetail) error {
	f := table.NewFields()
	f.Add("Node", n.Name)
	word := stateOf(&n.Node)
	if !n.Since.IsZero() {
		word += " since " + n.Since.Local().Format(human.ISO)
	}
	f.Add("State", word)
	f.Add("Reason", n.Reason)
	f.Add("Cluster", fmt.Sprint(n.Cluster))
	f.Add("Partitions", strings.Join(n.Partitions, ", "))
	f.Add("Last heard", a.Moment(n.LastSeen))
	f.Add("Jobs", fmt.Sprint(n.Jobs))
	f.Add("Cores", fmt.Sprintf("%d of %d free", n.CPUs.Free, n.CPUs.Total))
	f.Add("Memory", fmt.Sprintf("%s of %s free", human.Size(nil, n.MemBytes.Free), human.Size(nil, n.MemBytes.Total)))
	f.Add("Driver", n.Driver)
	f.Add("CUDA", n.CUDA)
	f.Add("Features", strings.Join(n.Features, ", "))
	f.Add("gbatch", n.Version)
	err := f.Fold(a.Term.Width).Write(a.Out)
	if len(n.GPUs) > 0 {
		fmt.Fprintln(a.Out, "\nGPUs")
		err = errors.Join(err, gpuTable([]api.Node{n.Node}).Indent("  ").Fit(a.Term.Width).Write(a.Out))
	}
	if len(n.Storage) > 0 {
		fmt.Fprintln(a.Out, "\nStorage")
		err = errors.Join(err, storageTable(n.Storage).Indent("  ").Fold(a.Term.Width).Write(a.Out))
	}
	if len(n.Past) > 0 {
		fmt.Fprintln(a.Out, "\nPast")
		t := table.New()
		for _, c := range n.Past {
			t.Row(c.Time.Local().Format(human.ISO), c.State, changeText(c))
		}
		err = errors.Join(err, t.Indent("  ").Fold(a.Term.Width).Write(a.Out))
	}
	return err
}

// storageTable is what jobs can mount on a node.
func storageTable(list []api.NodeStorage) *table.Grid {
	t := table.New("NAME", "FREE", "STATE")
	for _, s := range list {
		room, word := "-", "ok"
		if s.TotalBytes > 0 {
			room = fmt.Sprintf("%s of %s", human.Size(nil, s.FreeBytes), human.Size(nil, s.TotalBytes))
		}
		if s.ReadOnly {
			word = "read-only"
		}
		if s.Away != "" {
			word = "away: " + s.Away
		}
		t.Row(s.Name, room, word)
	}
	return t
}

// changeText is what happened, why, and by whose order where that is not said yet.
func changeText(c api.NodeChange) string {
	text := c.Text
	if c.Reason != "" && !strings.Contains(text, c.Reason) {
		text += ": " + c.Reason
	}
	if c.By != "" && !strings.Contains(text, "("+c.By+")") {
		text += " (" + c.By + ")"
	}
	return text
}
