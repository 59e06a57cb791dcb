package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gbatch/accounting"
	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// usageRows bounds a report.
const usageRows = 100_000

// usageBy are the dimensions of a report.
var usageBy = []string{"project", "user", "model", "cluster", "day", "month"}

type usageInput struct {
	By      string    `query:"by" doc:"dimensions, separated by commas: project, user, model, cluster, day, month; default project"`
	User    []string  `query:"user,explode"`
	Project []string  `query:"project,explode"`
	Start   time.Time `query:"start" doc:"in the first day (UTC); default 30 days ago"`
	End     time.Time `query:"end" doc:"in the first day that is not counted; default tomorrow"`
}

// usageKey is a row's dimensions, empty where the report is not divided by one.
type usageKey struct {
	day                  int64 // or the first of the month; -1: not divided
	project, user, model string
	cluster              int
	byDay, byMonth       bool
}

// report adds up what was used.
type report struct {
	in   *usageInput
	by   []string
	rows map[usageKey]*accounting.Slice
	days map[string]bool // of whom and when something was stored
}

func (in *usageInput) report(now time.Time) (*report, error) {
	r := &report{in: in, by: strings.Split(cmp.Or(in.By, "project"), ","), rows: map[usageKey]*accounting.Slice{}, days: map[string]bool{}}
	for i, d := range r.by {
		if !slices.Contains(usageBy, d) || slices.Contains(r.by[:i], d) {
			return nil, api.Errorf(api.CodeBadRequest, "usage cannot be divided by %q, or is already", d).
				WithHint("by: " + strings.Join(usageBy, ", "))
		}
	}
	if in.Start.IsZero() {
		in.Start = now.AddDate(0, 0, -30)
	}
	if in.End.IsZero() {
		in.End = now.AddDate(0, 0, 1)
	}
	in.Start, in.End = in.Start.UTC().Truncate(24*time.Hour), in.End.UTC().Truncate(24*time.Hour)
	if !in.Start.Before(in.End) || in.Start.Unix() < 0 {
		return nil, api.Errorf(api.CodeBadRequest, "there is no day from %s to before %s", in.Start.Format(time.DateOnly), in.End.Format(time.DateOnly))
	}
	return r, nil
}

// Usage reports what was used on whole days: by operators of all, by others of
// themselves and of their projects.
func (s *History) Usage(ctx context.Context, in *usageInput) (*api.UsageReport, error) {
	id := access.Caller(ctx)
	r, err := in.report(s.Now())
	if err != nil {
		return nil, err
	}
	see := func(d *accounting.Day) bool {
		return s.Rights.MayTouch(id, &state.Owner{User: d.User, Project: d.Project})
	}
	var open []accounting.Day // first: what is closed meanwhile is stored, and is taken from there
	if err := s.Loop.Ask(ctx, func(c *control.Controller, now sched.Time) { open = c.Days(now) }); err != nil {
		return nil, err
	}
	day := func(t time.Time) store.Place { return store.Place{Seq: uint64(t.UnixMilli() / accounting.DayMS)} }
	err = s.Store.Range(state.KindDay, store.Span{From: day(in.Start), To: day(in.End)}, func(rec state.Record) (bool, error) {
		var d accounting.Day
		if err := json.Unmarshal(rec.Value, &d); err != nil {
			return false, fmt.Errorf("decode day %d of %s: %w", rec.Seq, rec.Name, err)
		}
		r.days[dayKey(&d)] = true
		return true, r.add(&d, see)
	})
	for i := range open {
		if d := &open[i]; err == nil && !r.days[dayKey(d)] && d.Day >= int64(day(in.Start).Seq) && d.Day < int64(day(in.End).Seq) {
			err = r.add(d, see)
		}
	}
	if err != nil {
		return nil, err
	}
	out := r.toAPI()
	return &out, nil
}

func dayKey(d *accounting.Day) string { return fmt.Sprint(d.Day, "/", d.Project, "/", d.User) }

// add counts a day of one user in one project, if it is asked for.
func (r *report) add(d *accounting.Day, see func(*accounting.Day) bool) error {
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	if !has(r.in.User, d.User) || !has(r.in.Project, d.Project) || !see(d) {
		return nil
	}
	for _, s := range d.Slices {
		k := usageKey{day: -1, cluster: -1}
		for _, by := range r.by {
			switch by {
			case "project":
				k.project = d.Project
			case "user":
				k.user = d.User
			case "model":
				k.model = cmp.Or(s.Model, "none")
			case "cluster":
				k.cluster = s.Cluster
			case "day":
				k.day, k.byDay = d.Day, true
			case "month":
				k.byMonth = true
				if k.day < 0 {
					k.day = monthOf(d.Day)
				}
			}
		}
		if k.byDay {
			k.day = d.Day
		}
		if r.rows[k] == nil {
			if len(r.rows) >= usageRows {
				return api.Errorf(api.CodeTooLarge, "the report has more than %d rows", usageRows).
					WithHint("divide it by less, or ask for fewer days")
			}
			r.rows[k] = &accounting.Slice{}
		}
		r.rows[k].Add(s)
	}
	return nil
}

func dateOf(day int64) time.Time { return time.UnixMilli(day * accounting.DayMS).UTC() }

// monthOf is the first day of a day's month.
func monthOf(day int64) int64 {
	t := dateOf(day)
	return day - int64(t.Day()-1)
}

// toAPI is the rows by time, then by name.
func (r *report) toAPI() api.UsageReport {
	out := api.UsageReport{Start: r.in.Start, End: r.in.End, By: r.by, Rows: []api.UsageRow{}}
	keys := slices.SortedFunc(maps.Keys(r.rows), func(a, b usageKey) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.project, b.project), cmp.Compare(a.user, b.user),
			cmp.Compare(a.model, b.model), cmp.Compare(a.cluster, b.cluster))
	})
	var total accounting.Slice
	for _, k := range keys {
		row := usageRow(r.rows[k])
		row.Project, row.User, row.Model, row.Cluster = k.project, k.user, k.model, max(k.cluster, 0)
		if k.byDay {
			row.Day = dateOf(k.day).Format(time.DateOnly)
		}
		if k.byMonth {
			row.Month = dateOf(k.day).Format("2006-01")
		}
		out.Rows = append(out.Rows, row)
		total.Add(*r.rows[k])
	}
	out.Total = usageRow(&total)
	return out
}

func usageRow(s *accounting.Slice) api.UsageRow {
	return api.UsageRow{
		BilledHours: wire.BilledHours(s.Used.Billed), GPUSeconds: float64(s.Used.MilliGPU) / 1e6, CPUSeconds: float64(s.Used.MilliCPU) / 1e6,
		MemGiBSeconds: float64(s.Used.MemMiB) / 1024 / 1000, Starts: s.Starts, WaitSeconds: float64(s.WaitMS) / 1000, Ended: s.Ended,
	}
}
