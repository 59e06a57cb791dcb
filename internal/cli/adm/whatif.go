package adm

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
)

// WhatIf is gadm policy what-if.
type WhatIf struct {
	Set      []string `placeholder:"RULE=VALUE" sep:"none" help:"Change a rule, as half_life=14d or weights.small=500."`
	AddNodes []string `placeholder:"COUNTxGPUSxMODEL" sep:"none" help:"What if there were these too, as 2x8xh100."`
	File     bool     `help:"The rules as the controller's file has them now."`
}

// Run prints who would wait for how long.
func (o *WhatIf) Run(ctx context.Context, a *cli.App) error {
	w, err := client.WhatIf(ctx, a.Client, api.WhatIfRequest{Set: o.Set, AddNodes: o.AddNodes, File: o.File})
	if done, err := a.Answered(w, err); done {
		return err
	}
	t := table.New("USER", "WAITING", "START", "THEN", "WAIT", "THEN", "SOONER", "LATER")
	t.Right(2, 3, 4, 5, 6, 7, 8)
	row := func(name string, u api.WhatIfWaits) {
		t.Row(name, fmt.Sprint(u.Jobs), fmt.Sprint(u.StartedBefore), fmt.Sprint(u.StartedAfter), string(human.Duration(nil, u.WaitBeforeS)), string(human.Duration(nil, u.WaitAfterS)), fmt.Sprint(u.Sooner), fmt.Sprint(u.Later))
	}
	row("(all)", w.All)
	for _, u := range w.Users {
		row(u.User, u)
	}
	if err := t.Write(a.Out); err != nil {
		return err
	}
	if len(w.Jobs) > 0 {
		fmt.Fprintln(a.Out)
		t := table.New("JOB", "USER", "NAME", "STARTS", "THEN")
		for _, j := range w.Jobs {
			t.Row(j.ID, j.User, j.Name, startIn(w, j.Before), startIn(w, j.After))
		}
		if err := t.Fit(a.Term.Width).Write(a.Out); err != nil {
			return err
		}
	}
	if !w.Whole {
		a.Say("note: until %s, so far was looked in the time that there is", w.Until.Format(time.RFC3339))
	}
	return nil
}

// startIn is how long from now a job starts.
func startIn(w *api.WhatIf, at *time.Time) string {
	if at == nil {
		return "later"
	}
	return "in " + string(human.Duration(nil, max(int64(at.Sub(w.Now).Seconds()), 0)))
}
