package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/job"
)

// sdiag shows how the controller fares, in Slurm's words where they mean the same.
func sdiag(ctx context.Context, a *cli.App, args []string) error {
	asJSON := false
	var named clusters
	rest, err := getopt.Parse(args, []getopt.Option{getopt.Bool(&asJSON, "--json"), getopt.Ignored("-a", "--all", "-v", "--verbose"), named.option(),
		getopt.Instead("restart gctld", "-r", "--reset"), getopt.Instead("use --json", "--yaml", "-i", "--sort-by-id", "-t", "--sort-by-time", "-T", "--sort-by-time2")})
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return exit.Usagef("%q is no option", rest[0])
	}
	if err := named.check(); err != nil {
		return err
	}
	d, err := a.Client.Diag(ctx)
	if err != nil {
		return err
	}
	status, err := a.Client.Status(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a, "statistics", []*api.Diagnosis{d}, func(d **api.Diagnosis) object { return diagJSON(*d, status) })
	}
	_, err = fmt.Fprint(a.Out, diagText(d, status))
	return err
}

func micros(ms float64) int64 { return int64(ms * 1000) }

func stamp(t time.Time) string {
	return fmt.Sprintf("%s (%d)", t.Local().Format(time.ANSIC), t.Unix())
}

func diagText(d *api.Diagnosis, status *api.Status) string {
	var b strings.Builder
	rule := strings.Repeat("*", 55)
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s\nsdiag output at %s\nData since      %s\n%s", rule, stamp(d.Now), stamp(d.Started), rule)
	line("Server thread count:  %d\nAgent queue size:     %d\n", d.Goroutines, d.Inbox)
	line("Jobs started:   %d\nJobs completed: %d\nJobs canceled:  %d\nJobs failed:    %d\n", d.Starts, status.Jobs[job.Finished], status.Jobs[job.Cancelled], status.Jobs[job.Failed])
	line("Job states ts:  %s\nJobs pending:   %d\nJobs running:   %d\n", stamp(d.Now), d.Waiting, d.Running)
	line("Main schedule statistics (microseconds):\n\tTotal cycles: %d\n\tMean cycle:   %d\n\tMean depth cycle:  %.0f\n\tLast queue length: %d\n", d.Rounds.Count, micros(d.Rounds.MeanMS), d.Evaluated, d.Waiting)
	line("Backfilling stats\n\tTotal backfilled jobs (since last slurm start): %d\n", d.Backfilled)
	line("Remote Procedure Call statistics by message type")
	routes := slices.Clone(d.Routes)
	slices.SortStableFunc(routes, func(x, y api.RouteUse) int { return cmp.Compare(y.Count, x.Count) })
	for _, r := range routes {
		line("\t%-39s (%5d) count:%-6d ave_time:%-6d total_time:%d", r.Route, 0, r.Count, micros(r.MeanMS), micros(r.MeanMS*float64(r.Count)))
	}
	return b.String()
}

func diagJSON(d *api.Diagnosis, status *api.Status) object {
	routes := []object{}
	for _, r := range d.Routes {
		routes = append(routes, object{"message_type": r.Route, "count": r.Count, "average_time": micros(r.MeanMS), "total_time": micros(r.MeanMS * float64(r.Count))})
	}
	return object{
		"req_time": d.Now.Unix(), "req_time_start": d.Started.Unix(), "server_thread_count": d.Goroutines, "agent_queue_size": d.Inbox,
		"jobs_started": d.Starts, "jobs_completed": status.Jobs[job.Finished], "jobs_canceled": status.Jobs[job.Cancelled], "jobs_failed": status.Jobs[job.Failed], "jobs_pending": d.Waiting, "jobs_running": d.Running,
		"schedule_cycle_total": d.Rounds.Count, "schedule_cycle_mean": micros(d.Rounds.MeanMS), "schedule_queue_length": d.Waiting, "bf_backfilled_jobs": d.Backfilled, "rpcs_by_message_type": routes,
	}
}
