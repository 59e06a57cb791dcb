package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// ledger is a controller with jobs that have ended, in pages of two.
type ledger struct {
	jobs  []api.PastJob
	seen  []string
	inner *fake
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.seen = append(l.seen, r.RequestURI)
	switch r.URL.Path {
	case api.PathHistory:
		var at int
		fmt.Sscanf(r.URL.Query().Get("after"), "0-%d", &at)
		end := min(at+2, len(l.jobs))
		h := api.History{Jobs: l.jobs[at:end]}
		if end < len(l.jobs) {
			h.Next = fmt.Sprintf("0-%d", end)
		}
		answer(w, h)
	case api.PathUsage:
		row := func(project, model string, hours float64) api.UsageRow {
			return api.UsageRow{Project: project, Model: model, BilledHours: hours, GPUSeconds: hours * 1800, CPUSeconds: hours * 7200, MemGiBSeconds: hours * 3600,
				Starts: 4, WaitSeconds: 4 * 95, Ended: map[string]int64{"FINISHED": 3, "FAILED": 1}}
		}
		answer(w, api.UsageReport{Start: now.AddDate(0, 0, -30), End: now.AddDate(0, 0, 1), By: []string{"project", "model"},
			Rows: []api.UsageRow{row("vision", "H100", 12.5), {Project: "vision", Model: "none", BilledHours: 0.25}}, Total: row("", "", 12.75)})
	case api.PathShares:
		answer(w, api.ShareList{Shares: []api.Share{
			{Project: "lab", Shares: 4, NormShares: 1, UsageHours: 12.5, NormUsage: 1, LevelFS: 1, TotalHours: 40, Budget: &api.Budget{Hours: 50, Used: 40}},
			{Project: "vision", Depth: 1, Shares: 1, NormShares: 0.5, UsageHours: 12.5, NormUsage: 1, LevelFS: 0.5, TotalHours: 40, Budget: &api.Budget{Hours: 10, Used: 12, Monthly: true}},
			{Project: "vision", User: "ann", Depth: 2, Shares: 1, NormShares: 0.5, LevelFS: -1, FairShare: 1, Rank: 1},
		}})
	default:
		l.inner.ServeHTTP(w, r)
	}
}

func pastJobs() []api.PastJob {
	detail := sampleJobs()[4]
	failed := api.PastJob{Job: detail.Job, Used: &api.Used{GPUSeconds: 180000, BilledHours: 50, ElapsedS: 90000, CPUTimeS: 7200.5, PeakMem: 32 << 30,
		GPU: &node.GPUUse{Utilization: 12.4, MaxUtilization: 97, MaxMem: 70 << 30, Mem: 80 << 30, EnergyJ: 36e6, Samples: 9}}}
	done := api.PastJob{Job: sampleJobs()[0].Job, Used: &api.Used{ElapsedS: 61, BilledHours: 0.03, PeakMem: 512 << 20, CPUTimeS: 60, GPU: &node.GPUUse{Simulated: true, Samples: 1}}}
	done.State, done.Ended, done.ExitCode = job.Finished, now.Add(-time.Minute), ptr(0)
	private := api.PastJob{Job: sampleJobs()[5].Job}
	private.State, private.Ended = job.Cancelled, now.Add(-time.Second)
	evil := api.PastJob{Job: sampleJobs()[3].Job, Used: &api.Used{}}
	evil.State, evil.Ended = job.Cancelled, now
	return []api.PastJob{failed, done, private, evil}
}

func TestAcct(t *testing.T) {
	all := "id,name%6,user,project,state,exit,exitcode,reason,submit,start,end,elapsed,elapsedraw,wait,limit,gpus,cpus,mem,nodes,nodelist,cluster,qos,priority," +
		"peakmem,cputime,gpuutil,gpuutilmax,gpumem,energy,gpuhours,billed,uuid"
	for name, run := range map[string]func(context.Context, *App) error{
		"acct":     func(ctx context.Context, a *App) error { return a.Acct(ctx, AcctOptions{}) },
		"acct_all": func(ctx context.Context, a *App) error { return a.Acct(ctx, AcctOptions{Format: all}) },
		"acct_slurm": func(ctx context.Context, a *App) error {
			return a.Acct(ctx, AcctOptions{Format: "JobID,JobName%5,State,ExitCode,MaxRSS,TotalCPU,Account", NoHeader: true})
		},
		"acct_csv": func(ctx context.Context, a *App) error {
			return a.Acct(ctx, AcctOptions{CSV: true, Format: "id,name,user,end,billed,gpuutil"})
		},
		"acct_json": func(ctx context.Context, a *App) error {
			a.Output.JSON = true
			return a.Acct(ctx, AcctOptions{Limit: 1})
		},
		"acct_ids": func(ctx context.Context, a *App) error { a.Output.IDs = true; return a.Acct(ctx, AcctOptions{}) },
		"acct_one": func(ctx context.Context, a *App) error {
			return a.Acct(ctx, AcctOptions{IDs: []string{"9"}, Format: "id,state,exit"})
		},
		"acct_unknown": func(ctx context.Context, a *App) error { return a.Acct(ctx, AcctOptions{Format: "id,elapsd"}) },
		"acct_state":   func(ctx context.Context, a *App) error { return a.Acct(ctx, AcctOptions{States: []string{"R"}}) },
		"acct_time":    func(ctx context.Context, a *App) error { return a.Acct(ctx, AcctOptions{Start: "yesterdayish"}) },
		"acct_span":    func(ctx context.Context, a *App) error { return a.Acct(ctx, AcctOptions{Start: "today", End: "2d"}) },
		"acct_both": func(ctx context.Context, a *App) error {
			return a.Acct(ctx, AcctOptions{IDs: []string{"9"}, Users: []string{"ann"}})
		},
		"acct_forms": func(ctx context.Context, a *App) error {
			a.Output.JSON = true
			return a.Acct(ctx, AcctOptions{CSV: true})
		},
		"acct_export": func(ctx context.Context, a *App) error { return a.Export(ctx, "", "") },
		"usage": func(ctx context.Context, a *App) error {
			return a.Usage(ctx, UsageOptions{By: []string{"project", "model"}})
		},
		"usage_csv": func(ctx context.Context, a *App) error {
			return a.Usage(ctx, UsageOptions{By: []string{"project", "model"}, CSV: true})
		},
		"usage_json": func(ctx context.Context, a *App) error { a.Output.JSON = true; return a.Usage(ctx, UsageOptions{}) },
		"usage_ids":  func(ctx context.Context, a *App) error { a.Output.IDs = true; return a.Usage(ctx, UsageOptions{}) },
		"shares":     func(ctx context.Context, a *App) error { return a.Shares(ctx, nil, false) },
		"shares_json": func(ctx context.Context, a *App) error {
			a.Output.JSON = true
			return a.Shares(ctx, []string{"lab"}, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, &ledger{jobs: pastJobs(), inner: &fake{jobs: sampleJobs()}})
			b.golden(t, name, b.app.fail(Program{Name: "gacct"}, run(t.Context(), b.app)))
		})
	}
}

// TestAcctPages: pages are asked for until there is enough, the last first
// where only some are wanted, and printed in the order of their ends.
func TestAcctPages(t *testing.T) {
	for limit, want := range map[int]struct{ asks, out string }{
		0: {"start,start after=0-2", "9 12 16 15"},
		3: {"limit=3 newest start,after=0-2 limit=1 newest start", "15 16 12 9"},
	} {
		l := &ledger{jobs: pastJobs(), inner: &fake{}}
		b := start(t, l)
		b.app.Output.IDs = true
		if err := b.app.Acct(t.Context(), AcctOptions{Limit: limit}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.out, strings.Join(strings.Fields(b.out.String()), " ")); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
		if n := strings.Count(want.asks, ",") + 1; n != len(l.seen) || strings.Contains(want.asks, "newest") != strings.Contains(l.seen[0], "newest=true") {
			t.Errorf("limit %d asked %q", limit, l.seen)
		}
	}
}

func TestParsePast(t *testing.T) {
	a := &App{Now: func() time.Time { return now }}
	for text, want := range map[string]time.Time{
		"now": now, "today": now.Add(-9 * time.Hour), "2026-02": time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), "2026-02-03": time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC),
		"2026-02-03T04:05": time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC), "12h": now.Add(-12 * time.Hour), "now-7days": now.AddDate(0, 0, -7), "2 weeks": now.AddDate(0, 0, -14),
	} {
		if got, err := a.parsePast(text, time.UTC); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "7", "d", "7 moons", "2026-13-01", "-7d", "99999999999d"} {
		if got, err := a.parsePast(bad, time.UTC); err == nil {
			t.Errorf("%q is %s", bad, got)
		}
	}
}

func TestEff(t *testing.T) {
	run := func(name string, state job.State, used *api.Used) {
		t.Run(name, func(t *testing.T) {
			d := sampleJobs()[4]
			d.State, d.Used = state, used
			if used == nil {
				d.Attempts = nil
			}
			b := start(t, &fake{jobs: []api.JobDetail{d}})
			b.golden(t, name, b.app.fail(Program{Name: "gacct"}, b.app.Eff(t.Context(), []string{"9"})))
		})
	}
	gpu := &node.GPUUse{Utilization: 12, MaxUtilization: 99, MaxMem: 20 << 30, Mem: 80 << 30, EnergyJ: 3.6e6, Samples: 100}
	run("eff_low", job.Finished, &api.Used{ElapsedS: 3600, CPUTimeS: 4000, PeakMem: 3 << 30, GPU: gpu})
	run("eff_limit", job.Finished, &api.Used{ElapsedS: 3600, CPUTimeS: 8 * 3500, PeakMem: 31 << 30})
	run("eff_runs", job.Running, &api.Used{ElapsedS: 600, CPUTimeS: 8 * 590, PeakMem: 20 << 30, GPU: &node.GPUUse{Samples: 4, Simulated: true, EnergyJ: 42000}})
	run("eff_short", job.Failed, &api.Used{ElapsedS: 3, CPUTimeS: 1})
	run("eff_none", job.Queued, nil)
}
