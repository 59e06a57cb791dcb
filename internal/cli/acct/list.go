// Package acct is gacct: jobs that have ended and what they used, what was used
// by whom, shares, and what one could have asked for instead.
package acct

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
	"gbatch/internal/units"
)

// List is gacct without another command, and its flags.
type List struct {
	IDs      []string `arg:"" optional:"" name:"id" help:"Only these jobs, in any state: numbers, tasks as 12_7, steps as 12.0, UUIDs or the beginning of a UUID."`
	Users    []string `short:"u" name:"user" help:"Only jobs of these users."`
	Me       bool     `help:"Only your own jobs."`
	Projects []string `short:"A" name:"project" help:"Only jobs of these projects."`
	Names    []string `name:"name" help:"Only jobs with these names."`
	States   []string `short:"s" name:"state" help:"Only jobs that ended so, as FAILED,CANCELLED; or Slurm's CD, F, CA."`
	Reasons  []string `name:"reason" help:"Only jobs that ended for these reasons, as OOM,NODE_FAIL."`
	Start    string   `short:"S" placeholder:"TIME" help:"Ended at it or later: 2026-03-01, 2026-03-01T18:00, today, 12h or 7d ago. Default 7d."`
	End      string   `short:"E" placeholder:"TIME" help:"Ended before it."`
	Limit    int      `short:"c" help:"Only the last so many."`
	Format   string   `short:"o" placeholder:"COLUMNS" help:"Names of columns, ours or sacct's, as id,name%20,state,elapsed,billed."`
	NoHeader bool     `short:"n" help:"No header line."`
	Steps    bool     `help:"With a line for each step that srun started; one alone: its ID, as 12.0."`
	CSV      bool     `name:"csv" group:"output" help:"Print comma-separated values."`
}

// daysBack is how far gacct looks back when it is not told.
const daysBack = 7

// filter is what the controller is asked for.
func (o *List) filter(ctx context.Context, a *cli.App) (client.HistoryFilter, error) {
	f := client.HistoryFilter{Projects: o.Projects, Names: o.Names, Reasons: o.Reasons, Newest: o.Limit > 0, Limit: o.Limit, Steps: o.Steps}
	states, err := jobs.ParseStates(o.States)
	if err != nil {
		return f, err
	}
	for _, s := range states {
		if !s.Final() {
			return f, exit.Usagef("gacct lists jobs that have ended, and %s is no end: gqueue -t %s lists those", s, s)
		}
		f.States = append(f.States, string(s))
	}
	for i, r := range f.Reasons {
		f.Reasons[i] = strings.ToUpper(r)
	}
	if f.Users, err = a.Users(ctx, o.Users, o.Me); err != nil {
		return f, err
	}
	f.Start = a.Now().AddDate(0, 0, -daysBack)
	return f, period{o.Start, o.End}.read(a, &f.Start, &f.End, time.Local)
}

// period is what -S and -E say.
type period struct{ from, to string }

// read reads both; what is empty stays as it is.
func (p period) read(a *cli.App, start, end *time.Time, zone *time.Location) (err error) {
	if p.from != "" {
		if *start, err = units.ParsePast(p.from, a.Now(), zone); err != nil {
			return exit.Usagef("--start %w", err)
		}
	}
	if p.to != "" {
		if *end, err = units.ParsePast(p.to, a.Now(), zone); err != nil {
			return exit.Usagef("--end %w", err)
		}
	}
	if !end.IsZero() && !start.Before(*end) {
		return exit.Usagef("there is no time from %s to before %s", start.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	return nil
}

// check refuses what would not be heeded.
func (o *List) check(out cli.Output) error {
	filters := len(o.Users) + len(o.Projects) + len(o.Names) + len(o.States) + len(o.Reasons) + len(o.Start) + len(o.End) + o.Limit
	switch {
	case len(o.IDs) > 0 && (filters > 0 || o.Me):
		return exit.Usagef("give jobs by ID, or say which by -u, -A, --name, -s, --reason, -S, -E and -c: not both")
	case o.Limit < 0:
		return exit.Usagef("--limit is %d: want 1 or more", o.Limit)
	}
	return oneForm(o.CSV, out)
}

// oneForm refuses --csv beside another form.
func oneForm(csv bool, out cli.Output) error {
	if csv && (out.JSON || out.IDs) {
		return exit.Usagef("--csv, --json and --ids are three forms: choose one")
	}
	return nil
}

// Run lists jobs that have ended, the first to end first; and with IDs jobs in
// any state, with those tasks of an array that have ended.
func (o *List) Run(ctx context.Context, a *cli.App) error {
	if err := o.check(a.Output); err != nil {
		return err
	}
	cols, err := chosen(o.Format)
	if err != nil {
		return err
	}
	past, err := o.jobs(ctx, a)
	if err != nil {
		return err
	}
	if len(past) == 0 {
		a.SayUnknown(a.Unknown(ctx, o.Users))
		a.SayAbsent(ctx, cli.Filters{Projects: o.Projects})
	}
	v := a.View()
	v.Relative = v.Relative && !o.CSV && o.Format == ""
	v.NoHeader = o.NoHeader
	switch {
	case a.Output.JSON:
		return a.WriteJSON(api.History{Jobs: past})
	case a.Output.IDs:
		for _, j := range past {
			fmt.Fprintln(a.Out, j.Number)
		}
		return nil
	}
	if o.Steps {
		past = withSteps(a, past)
	}
	if o.CSV {
		return writeCSV(a.Out, cols, past, &v)
	}
	if err := table.Of(cols).Write(a.Out, past, v); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	if a.Term.Out && len(o.IDs) == 0 && o.Start == "" {
		a.Say("%s that ended in the last %d days; others: -S; what one could have asked for: gacct eff ID", english.Plural(len(past), "job", ""), daysBack)
	}
	return nil
}

func (o *List) jobs(ctx context.Context, a *cli.App) (past []api.PastJob, err error) {
	take := func(f client.HistoryFilter) error {
		for j, err := range a.Client.Past(ctx, f) {
			if err != nil {
				return err
			}
			past = append(past, *j)
		}
		return nil
	}
	past = []api.PastJob{}
	for _, id := range o.IDs {
		id, step := cutStep(id)
		d, err := a.Client.Job(ctx, id, client.JobOptions{})
		if err != nil {
			return nil, err
		}
		j := api.PastJob{Job: d.Job, Used: d.Used}
		if step != "" {
			if j, err = stepOf(a, &j, step); err != nil {
				return nil, err
			}
		}
		past = append(past, j)
		if step != "" || d.Tasks == nil {
			continue
		}
		if err := take(client.HistoryFilter{Array: d.Number, Start: d.Submitted, Steps: o.Steps}); err != nil {
			return nil, err
		}
	}
	if len(o.IDs) > 0 {
		return past, nil
	}
	f, err := o.filter(ctx, a)
	if err != nil {
		return nil, err
	}
	if err = take(f); f.Newest {
		slices.Reverse(past)
	}
	return past, err
}

// Export is gacct export.
type Export struct {
	Start string `short:"S" placeholder:"TIME" help:"Ended at it or later. Default: from the first."`
	End   string `short:"E" placeholder:"TIME" help:"Ended before it."`
}

// Run prints all that is recorded of jobs that ended, one JSON object a line.
func (o *Export) Run(ctx context.Context, a *cli.App) error {
	f := client.HistoryFilter{Attempts: true}
	if err := noIDs(a); err != nil {
		return err
	}
	if err := (period{o.Start, o.End}).read(a, &f.Start, &f.End, time.Local); err != nil {
		return err
	}
	for j, err := range a.Client.Past(ctx, f) {
		if err != nil {
			return err
		}
		if err := a.WriteLine(struct {
			Schema int `json:"schema"`
			*api.PastJob
		}{cli.Schema, j}); err != nil {
			return err
		}
	}
	return nil
}

// noIDs refuses --ids where the result is no list of jobs.
func noIDs(a *cli.App) error {
	if a.Output.IDs {
		return exit.Usagef("--ids prints job numbers, and this prints none: use gacct --ids with the same -u, -A, -S and -E")
	}
	return nil
}

func writeCSV(w io.Writer, cols []*table.Column[api.PastJob], past []api.PastJob, v *table.View) error {
	out := csv.NewWriter(w)
	row := make([]string, len(cols))
	if !v.NoHeader {
		for i, c := range cols {
			row[i] = c.Name()
		}
		_ = out.Write(row) // Flush has the error
	}
	var cell []byte
	for i := range past {
		for k, c := range cols {
			if cell = cell[:0]; plain[c.Name()] != nil {
				cell = plain[c.Name()](cell, &past[i])
			} else {
				cell = c.Cell(v, cell, &past[i])
			}
			if row[k] = human.Clean(string(cell)); row[k] == "-" {
				row[k] = ""
			}
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}
