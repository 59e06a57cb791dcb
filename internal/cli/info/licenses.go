package info

import (
	"context"
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/table"
)

// licenses lists what the site counts, and how much of it is free.
func (o *Info) licenses(ctx context.Context, a *cli.App) error {
	info, err := a.Client.Cluster(ctx)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.WriteJSON(struct {
			Licenses []api.License `json:"licenses"`
		}{info.Licenses})
	}
	t := table.New("LICENSE", "TOTAL", "USED", "FREE", "WAITED FOR").NoHeader(o.NoHeader).Right(2, 3, 4, 5)
	for _, x := range info.Licenses {
		t.Row(x.Name, fmt.Sprint(x.Total), fmt.Sprint(x.Used), fmt.Sprint(max(x.Total-x.Used, 0)), fmt.Sprint(x.Asked))
	}
	if err := t.Fit(a.Term.Width).Write(a.Out); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if len(info.Licenses) == 0 && a.Term.Out {
		a.Say("this site counts no licences; an operator names them in gctld.yaml: licenses")
	}
	return nil
}
