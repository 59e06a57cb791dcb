package cli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// AcctOptions are what gacct lists and how.
type AcctOptions struct {
	IDs      []string
	Users    []string
	Me       bool
	Projects []string
	Names    []string
	States   []string
	Reasons  []string
	Start    string // empty: 7 days ago
	End      string
	Limit    int // the last so many; 0: all
	Format   string
	NoHeader bool
	CSV      bool
}

// acctDays is how far gacct looks back when it is not told.
const acctDays = 7

// filter is what the controller is asked for.
func (a *App) acctFilter(ctx context.Context, o AcctOptions) (client.HistoryFilter, error) {
	f := client.HistoryFilter{Users: o.Users, Projects: o.Projects, Names: o.Names, Reasons: o.Reasons, Newest: o.Limit > 0}
	states, err := parseStates(o.States)
	if err != nil {
		return f, err
	}
	for _, s := range states {
		if !s.Final() {
			return f, usageError("gacct lists jobs that have ended, and %s is no end: gqueue -t %s lists those", s, s)
		}
		f.States = append(f.States, string(s))
	}
	for i, r := range f.Reasons {
		f.Reasons[i] = strings.ToUpper(r)
	}
	if o.Me {
		me, err := a.me(ctx)
		if err != nil {
			return f, err
		}
		f.Users = append(f.Users, me)
	}
	f.Start = a.Now().AddDate(0, 0, -acctDays)
	return f, a.period(&f.Start, &f.End, o.Start, o.End, time.Local)
}

// period reads -S and -E; what is empty stays as it is.
func (a *App) period(start, end *time.Time, from, to string, zone *time.Location) (err error) {
	if from != "" {
		if *start, err = a.parsePast(from, zone); err != nil {
			return usageError("--start %w", err)
		}
	}
	if to != "" {
		if *end, err = a.parsePast(to, zone); err != nil {
			return usageError("--end %w", err)
		}
	}
	if !end.IsZero() && !start.Before(*end) {
		return usageError("there is no time from %s to before %s", start.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	return nil
}

// pastForms are how a time that was may be written.
var pastForms = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly, "2006-01"}

// parsePast reads a time, a date, now, today, or how long ago: 12h, 7d, as
// Slurm has it now-7days.
func (a *App) parsePast(text string, zone *time.Location) (time.Time, error) {
	now := a.Now().In(zone)
	switch text {
	case "now":
		return now, nil
	case "today":
		return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, zone), nil
	}
	for _, form := range pastForms {
		if t, err := time.ParseInLocation(form, text, zone); err == nil {
			return t, nil
		}
	}
	ago := strings.TrimPrefix(text, "now-")
	for _, unit := range []struct {
		names string
		long  time.Duration
	}{{"d day days", 24 * time.Hour}, {"w week weeks", 7 * 24 * time.Hour}, {"h hour hours", time.Hour}, {"m minute minutes", time.Minute}, {"s second seconds", time.Second}} {
		digits := strings.TrimRight(ago, "abcdefghijklmnopqrstuvwxyz ")
		var n int
		if _, err := fmt.Sscanf(digits, "%d", &n); err == nil && fmt.Sprint(n) == digits && n >= 0 && n < 100_000 &&
			slices.Contains(strings.Fields(unit.names), strings.TrimSpace(ago[len(digits):])) {
			return now.Add(-time.Duration(n) * unit.long), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want 2026-03-01, 2026-03-01T18:00, 2026-03, today, now, or how long ago as 12h or 7d", text)
}

// check refuses what would not be heeded.
func (o *AcctOptions) check(out Output) error {
	filters := len(o.Users) + len(o.Projects) + len(o.Names) + len(o.States) + len(o.Reasons) + len(o.Start) + len(o.End) + o.Limit
	switch {
	case len(o.IDs) > 0 && (filters > 0 || o.Me):
		return usageError("give jobs by ID, or say which by -u, -A, --name, -s, --reason, -S, -E and -c: not both")
	case o.Limit < 0:
		return usageError("--limit is %d: want 1 or more", o.Limit)
	}
	return oneForm(o.CSV, out)
}

// oneForm refuses --csv beside another form.
func oneForm(csv bool, out Output) error {
	if csv && (out.JSON || out.IDs) {
		return usageError("--csv, --json and --ids are three forms: choose one")
	}
	return nil
}

// Acct lists jobs that have ended, the first to end first; and with IDs jobs in
// any state, with those tasks of an array that have ended.
func (a *App) Acct(ctx context.Context, o AcctOptions) error {
	if err := o.check(a.Output); err != nil {
		return err
	}
	cols, err := parseColumns(o.Format)
	if err != nil {
		return err
	}
	jobs, err := a.pastJobs(ctx, o)
	if err != nil {
		return err
	}
	v := &view{now: a.Now(), relative: !a.Output.ISO && !o.CSV && o.Format == ""}
	switch {
	case a.Output.JSON:
		return a.writeJSON(api.History{Jobs: jobs})
	case a.Output.IDs:
		for _, j := range jobs {
			fmt.Fprintln(a.Out, j.Number)
		}
		return nil
	case o.CSV:
		return writeCSV(a.Out, cols, jobs, v, !o.NoHeader)
	}
	g := &grid{}
	for _, c := range cols {
		gc := gridColumn{title: c.title, right: c.right, least: c.least}
		if c.name == "state" {
			gc.paint = func(cell []byte) string { return stateColor(job.State(cell)) }
		}
		g.columns = append(g.columns, gc)
	}
	for i := range jobs {
		for _, c := range cols {
			g.cell(func(b []byte) []byte { return c.put(v, b, &jobs[i]) })
		}
	}
	if err := g.write(a.Out, a.Term.Width, !o.NoHeader, a.Term.Color); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	if a.Term.Out && len(o.IDs) == 0 && o.Start == "" {
		a.say("%d jobs that ended in the last %d days; others: -S; what one could have asked for: gacct eff ID", len(jobs), acctDays)
	}
	return nil
}

func (a *App) pastJobs(ctx context.Context, o AcctOptions) ([]api.PastJob, error) {
	jobs := []api.PastJob{}
	if len(o.IDs) > 0 {
		for _, id := range o.IDs {
			d, err := a.Client.Job(ctx, id, client.JobOptions{})
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, api.PastJob{Job: d.Job, Used: d.Used})
			if d.Tasks == nil {
				continue
			}
			f := client.HistoryFilter{Array: d.Number, Start: d.Submitted}
			if err := a.pages(ctx, f, 0, func(j *api.PastJob) error { jobs = append(jobs, *j); return nil }); err != nil {
				return nil, err
			}
		}
		return jobs, nil
	}
	f, err := a.acctFilter(ctx, o)
	if err != nil {
		return nil, err
	}
	err = a.pages(ctx, f, o.Limit, func(j *api.PastJob) error {
		jobs = append(jobs, *j)
		return nil
	})
	if f.Newest {
		slices.Reverse(jobs)
	}
	return jobs, err
}

// pages takes all jobs of a selection, at most so many, page by page.
func (a *App) pages(ctx context.Context, f client.HistoryFilter, most int, take func(*api.PastJob) error) error {
	for n := 0; ; {
		if most > 0 {
			f.Limit = most - n
		}
		h, err := a.Client.History(ctx, f)
		if err != nil {
			return err
		}
		for i := range h.Jobs {
			if err := take(&h.Jobs[i]); err != nil {
				return err
			}
		}
		n += len(h.Jobs)
		if h.Next == "" || most > 0 && n >= most {
			return nil
		}
		f.After = h.Next
	}
}

// Export prints all that is recorded of jobs that ended, one JSON object a line.
func (a *App) Export(ctx context.Context, start, end string) error {
	f := client.HistoryFilter{Attempts: true}
	if err := a.noIDs(); err != nil {
		return err
	}
	if err := a.period(&f.Start, &f.End, start, end, time.Local); err != nil {
		return err
	}
	return a.pages(ctx, f, 0, func(j *api.PastJob) error {
		line, err := json.Marshal(struct {
			Schema int `json:"schema"`
			*api.PastJob
		}{Schema, j})
		if err != nil {
			return fmt.Errorf("encode output: %w", err)
		}
		_, err = io.WriteString(a.Out, escapeJSON(string(line))+"\n")
		return err
	})
}

// noIDs refuses --ids where the result is no list of jobs.
func (a *App) noIDs() error {
	if a.Output.IDs {
		return usageError("--ids prints job numbers, and this prints none: use gacct --ids with the same -u, -A, -S and -E")
	}
	return nil
}

func writeCSV(w io.Writer, cols []acctColumn, jobs []api.PastJob, v *view, header bool) error {
	out := csv.NewWriter(w)
	row := make([]string, len(cols))
	if header {
		for i, c := range cols {
			row[i] = c.name
		}
		_ = out.Write(row) // Flush has the error
	}
	var cell []byte
	for i := range jobs {
		for k, c := range cols {
			cell = c.put(v, cell[:0], &jobs[i])
			if row[k] = clean(string(cell)); row[k] == "-" {
				row[k] = ""
			}
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}
