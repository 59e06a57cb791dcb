package acct

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
)

// Usage is gacct usage.
type Usage struct {
	By       []string `default:"project" help:"What to divide it by: project, user, model, cluster, day, month."`
	Users    []string `short:"u" name:"user" help:"Only of these users."`
	Projects []string `short:"A" name:"project" help:"Only of these projects."`
	Start    string   `short:"S" placeholder:"DAY" help:"The first day (UTC): 2026-03-01, 2026-03, or 7d ago. Default 30d."`
	End      string   `short:"E" placeholder:"DAY" help:"The first day that is not counted."`
	NoHeader bool     `short:"n" help:"No header line."`
	CSV      bool     `name:"csv" group:"output" help:"Print comma-separated values."`
}

// Run reports what was used.
func (o *Usage) Run(ctx context.Context, a *cli.App) error {
	if err := noIDs(a); err != nil {
		return err
	}
	if err := oneForm(o.CSV, a.Output); err != nil {
		return err
	}
	f := client.UsageFilter{By: o.By, Users: o.Users, Projects: o.Projects, Start: a.Now().AddDate(0, 0, -30)}
	if err := (period{o.Start, o.End}).read(a, &f.Start, &f.End, time.UTC); err != nil {
		return err
	}
	r, err := a.Client.Usage(ctx, f)
	if done, err := a.Answered(r, err); done {
		return err
	}
	if len(r.Rows) == 0 {
		a.SayUnknown(a.Unknown(ctx, o.Users))
		a.SayAbsent(ctx, cli.Filters{Projects: o.Projects})
	}
	head := slices.Concat(r.By, []string{"billed_hours", "gpu_hours", "cpu_hours", "mem_gib_hours", "starts", "mean_wait", "ended"})
	if o.CSV {
		w := csv.NewWriter(a.Out)
		if !o.NoHeader {
			_ = w.Write(head) // Flush has the error
		}
		for i := range r.Rows {
			_ = w.Write(usageCells(r.By, &r.Rows[i], true))
		}
		w.Flush()
		return w.Error()
	}
	for i := range head {
		head[i] = strings.ToUpper(strings.ReplaceAll(head[i], "_", " "))
	}
	t := table.New(head...).NoHeader(o.NoHeader)
	n := len(r.By)
	t.Right(n+1, n+2, n+3, n+4, n+5, n+6)
	for i := range r.Rows {
		t.Row(usageCells(r.By, &r.Rows[i], false)...)
	}
	if len(r.Rows) > 1 {
		total := usageCells(r.By, &r.Total, false)
		total[0] = "total"
		for i := 1; i < n; i++ {
			total[i] = ""
		}
		t.Row(total...)
	}
	if err := t.Fit(a.Term.Width).Write(a.Out); err != nil {
		return err
	}
	a.Say("from %s to before %s (UTC); billed hours are of a GPU of weight 1", r.Start.Format(time.DateOnly), r.End.Format(time.DateOnly))
	return nil
}

// usageCells is a row; plain for programs: seconds, and zeros where nothing is.
func usageCells(by []string, r *api.UsageRow, plain bool) []string {
	var out []string
	for _, d := range by {
		out = append(out, map[string]string{
			"project": r.Project, "user": r.User, "model": r.Model, "cluster": strconv.Itoa(r.Cluster), "day": r.Day, "month": r.Month,
		}[d])
	}
	hours := func(seconds float64) string { return strconv.FormatFloat(seconds/3600, 'f', 2, 64) }
	wait := "-"
	switch {
	case r.Starts > 0 && plain:
		wait = strconv.FormatFloat(r.WaitSeconds/float64(r.Starts), 'f', 0, 64)
	case r.Starts > 0:
		wait = string(human.Duration(nil, int64(r.WaitSeconds/float64(r.Starts))))
	case plain:
		wait = ""
	}
	var ended []string
	for _, state := range slices.Sorted(maps.Keys(r.Ended)) {
		ended = append(ended, fmt.Sprintf("%d %s", r.Ended[state], state))
	}
	return append(out, strconv.FormatFloat(r.BilledHours, 'f', 2, 64), hours(r.GPUSeconds), hours(r.CPUSeconds), hours(r.MemGiBSeconds),
		strconv.FormatInt(r.Starts, 10), wait, strings.Join(ended, ", "))
}

// Shares is gacct shares.
type Shares struct {
	Projects []string `short:"A" name:"project" help:"Only these projects."`
	NoHeader bool     `short:"n" help:"No header line."`
}

// Run prints the share tree with its terms.
func (o *Shares) Run(ctx context.Context, a *cli.App) error {
	if err := noIDs(a); err != nil {
		return err
	}
	l, err := a.Client.Shares(ctx)
	if err != nil {
		return err
	}
	if len(o.Projects) > 0 {
		l.Shares = slices.DeleteFunc(l.Shares, func(s api.Share) bool { return !slices.Contains(o.Projects, s.Project) })
	}
	if len(l.Shares) == 0 {
		a.SayAbsent(ctx, cli.Filters{Projects: o.Projects})
	}
	if a.Output.JSON {
		return a.WriteJSON(l)
	}
	t := table.New("PROJECT", "USER", "SHARES", "NORM SHARES", "USAGE", "NORM USAGE", "LEVEL FS", "FAIR SHARE", "RANK", "TOTAL", "BUDGET").NoHeader(o.NoHeader)
	t.Right(3, 4, 5, 6, 7, 8, 9, 10)
	for _, s := range l.Shares {
		level, factor, rank, budget := strconv.FormatFloat(s.LevelFS, 'f', 6, 64), "", "", ""
		if s.LevelFS < 0 {
			level = "inf"
		}
		if s.User != "" {
			factor, rank = strconv.FormatFloat(s.FairShare, 'f', 6, 64), strconv.Itoa(s.Rank)
		}
		if s.Budget != nil {
			budget = human.Budget(s.Budget.Used, s.Budget.Hours, s.Budget.Monthly)
		}
		t.Row(
			strings.Repeat(" ", s.Depth)+s.Project, s.User, strconv.FormatInt(s.Shares, 10), strconv.FormatFloat(s.NormShares, 'f', 6, 64),
			strconv.FormatFloat(s.UsageHours, 'f', 2, 64), strconv.FormatFloat(s.NormUsage, 'f', 6, 64), level, factor, rank,
			strconv.FormatFloat(s.TotalHours, 'f', 2, 64), budget,
		)
	}
	return t.Fit(a.Term.Width).Write(a.Out)
}
