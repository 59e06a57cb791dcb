package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"gbatch/internal/api"
)

// Diag prints how the controller fares.
func (a *App) Diag(ctx context.Context) error {
	d, err := a.Client.Diag(ctx)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(d)
	}
	f := newFields()
	f.add("Controller", fmt.Sprintf("%s, up for %s", d.Version, slurmDuration(nil, int64(d.Now.Sub(d.Started)/time.Second))))
	f.add("Inbox", fmt.Sprintf("%d of %d requests wait", d.Inbox, d.InboxSize))
	f.add("Streams", fmt.Sprintf("%d open", d.Streams))
	f.add("Queue", fmt.Sprintf("%d wait in %d shapes, %d run", d.Waiting, d.Shapes, d.Running))
	f.add("Started", fmt.Sprintf("%d, %d of them backfilled; %d preempted", d.Starts, d.Backfilled, d.Preempted))
	f.add("Rounds", fmt.Sprintf("look at %.0f jobs on average; %d were cut short", d.Evaluated, d.Truncated))
	f.add("Store", fmt.Sprintf("%s, %d records written; %s free on its disk, %s must stay free", humanize.IBytes(d.StoreBytes), d.Records, humanize.IBytes(d.DiskFree), humanize.IBytes(d.DiskReserve)))
	f.add("Memory", fmt.Sprintf("%s of heap, %d goroutines", humanize.IBytes(d.HeapBytes), d.Goroutines))
	if err := render(a.Out, f.t, ""); err != nil {
		return err
	}
	t := newTable("WHAT", "COUNT", "MEAN", "MEDIAN", "99%")
	alignRight(t, 2, 3, 4, 5)
	for _, row := range []struct {
		name string
		t    api.Timing
	}{{"turn of the loop", d.Turns}, {"commit", d.Commits}, {"scheduling round", d.Rounds}, {"error of start estimates", d.Estimates}} {
		t.AppendRow(toRow(timingCells(row.name, row.t)))
	}
	fmt.Fprintln(a.Out)
	if err := render(a.Out, t, ""); err != nil || len(d.Routes) == 0 {
		return err
	}
	t = newTable("ROUTE", "COUNT", "MEAN", "MEDIAN", "99%", "4XX", "5XX")
	alignRight(t, 2, 3, 4, 5, 6, 7)
	for _, r := range d.Routes {
		t.AppendRow(toRow(append(timingCells(r.Route, r.Timing), strconv.FormatUint(r.Refused, 10), strconv.FormatUint(r.Failed, 10))))
	}
	fmt.Fprintln(a.Out)
	return render(a.Out, t, "")
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
