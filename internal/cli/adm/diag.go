package adm

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/table"
)

// Diag is gadm diag.
type Diag struct{}

// Run prints how the controller fares.
func (Diag) Run(ctx context.Context, a *cli.App) error {
	d, err := a.Client.Diag(ctx)
	if done, err := a.Answered(d, err); done {
		return err
	}
	f := table.NewFields()
	f.Add("Controller", fmt.Sprintf("%s, up for %s", d.Version, human.Duration(nil, int64(d.Now.Sub(d.Started)/time.Second))))
	f.Add("Inbox", fmt.Sprintf("%d of %d requests wait", d.Inbox, d.InboxSize))
	f.Add("Streams", fmt.Sprintf("%d open", d.Streams))
	f.Add("Queue", fmt.Sprintf("%d wait in %d shapes, %d run", d.Waiting, d.Shapes, d.Running))
	f.Add("Started", fmt.Sprintf("%d, %d of them backfilled; %d preempted", d.Starts, d.Backfilled, d.Preempted))
	f.Add("Rounds", fmt.Sprintf("look at %.0f jobs on average; %d were cut short", d.Evaluated, d.Truncated))
	f.Add("Store", fmt.Sprintf("%s, %d records written; %s free on its disk, %s must stay free", humanize.IBytes(d.StoreBytes), d.Records, humanize.IBytes(d.DiskFree), humanize.IBytes(d.DiskReserve)))
	f.Add("Memory", fmt.Sprintf("%s of heap, %d goroutines", humanize.IBytes(d.HeapBytes), d.Goroutines))
	if err := f.Fold(a.Term.Width).Write(a.Out); err != nil {
		return err
	}
	t := table.New("WHAT", "COUNT", "MEAN", "MEDIAN", "99%")
	t.Right(2, 3, 4, 5)
	for _, row := range []struct {
		name string
		t    api.Timing
	}{{"turn of the loop", d.Turns}, {"commit", d.Commits}, {"scheduling round", d.Rounds}, {"error of start estimates", d.Estimates}} {
		t.Row(timingCells(row.name, row.t)...)
	}
	fmt.Fprintln(a.Out)
	if err := t.Fit(a.Term.Width).Write(a.Out); err != nil || len(d.Routes) == 0 {
		return err
	}
	t = table.New("ROUTE", "COUNT", "MEAN", "MEDIAN", "99%", "4XX", "5XX")
	t.Right(2, 3, 4, 5, 6, 7)
	for _, r := range d.Routes {
		t.Row(append(timingCells(r.Route, r.Timing), strconv.FormatUint(r.Refused, 10), strconv.FormatUint(r.Failed, 10))...)
	}
	fmt.Fprintln(a.Out)
	return t.Fit(a.Term.Width).Write(a.Out)
}

func timingCells(name string, t api.Timing) []string {
	if t.Count == 0 {
		return []string{name, "0", "-", "-", "-"}
	}
	return []string{name, strconv.FormatUint(t.Count, 10), millis(t.MeanMS), millis(t.P50MS), millis(t.P99MS)}
}

// millis is a length with its unit: 0.35 ms, 12 ms, 3.1 s.
func millis(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}
