package acct

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// ledger is a controller with jobs that have ended, in pages of two.
type ledger struct {
	jobs  []api.PastJob
	seen  []string
	inner *clitest.Fake
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
		clitest.Answer(w, h)
	case api.PathUsage:
		row := func(project, model string, hours float64) api.UsageRow {
			return api.UsageRow{Project: project, Model: model, BilledHours: hours, GPUSeconds: hours * 1800, CPUSeconds: hours * 7200, MemGiBSeconds: hours * 3600,
				Starts: 4, WaitSeconds: 4 * 95, Ended: map[string]int64{"FINISHED": 3, "FAILED": 1}}
		}
		clitest.Answer(w, api.UsageReport{Start: clitest.Now.AddDate(0, 0, -30), End: clitest.Now.AddDate(0, 0, 1), By: []string{"project", "model"},
			Rows: []api.UsageRow{row("vision", "H100", 12.5), {Project: "vision", Model: "none", BilledHours: 0.25}}, Total: row("", "", 12.75)})
	case api.PathShares:
		clitest.Answer(w, api.ShareList{Shares: []api.Share{
			{Project: "lab", Shares: 4, NormShares: 1, UsageHours: 12.5, NormUsage: 1, LevelFS: 1, TotalHours: 40, Budget: &api.Budget{Hours: 50, Used: 40}},
			{Project: "vision", Depth: 1, Shares: 1, NormShares: 0.5, UsageHours: 12.5, NormUsage: 1, LevelFS: 0.5, TotalHours: 40, Budget: &api.Budget{Hours: 10, Used: 12, Monthly: true}},
			{Project: "vision", User: "ann", Depth: 2, Shares: 1, NormShares: 0.5, LevelFS: -1, FairShare: 1, Rank: 1},
		}})
	default:
		l.inner.ServeHTTP(w, r)
	}
}

func pastJobs() []api.PastJob {
	detail := clitest.SampleJobs()[4]
	failed := api.PastJob{Job: detail.Job, Used: &api.Used{GPUSeconds: 180000, BilledHours: 50, ElapsedS: 90000, CPUTimeS: 7200.5, PeakMem: 32 << 30,
		GPU: &node.GPUUse{Utilization: 12.4, MaxUtilization: 97, MaxMem: 70 << 30, Mem: 80 << 30, EnergyJ: 36e6, Samples: 9}}}
	failed.Steps = sampleSteps()
	done := api.PastJob{Job: clitest.SampleJobs()[0].Job, Used: &api.Used{ElapsedS: 61, BilledHours: 0.03, PeakMem: 512 << 20, CPUTimeS: 60, GPU: &node.GPUUse{Simulated: true, Samples: 1}}}
	done.State, done.Ended, done.ExitCode = job.Finished, clitest.Now.Add(-time.Minute), new(0)
	private := api.PastJob{Job: clitest.SampleJobs()[5].Job}
	private.State, private.Ended = job.Cancelled, clitest.Now.Add(-time.Second)
	evil := api.PastJob{Job: clitest.SampleJobs()[3].Job, Used: &api.Used{}}
	evil.State, evil.Ended = job.Cancelled, clitest.Now
	return []api.PastJob{failed, done, private, evil}
}

func sampleJobs() []api.JobDetail {
	jobs := clitest.SampleJobs()
	jobs[4].Steps = sampleSteps()
	return jobs
}

func sampleSteps() []api.Step {
	return []api.Step{
		{Number: 0, Name: "prepare", Tasks: 1, CPUs: 2, Nodes: []string{"gpu01"}, Begun: clitest.Now.Add(-80 * time.Minute), Ended: clitest.Now.Add(-70 * time.Minute)},
		{Number: 1, Name: "torchrun", Tasks: 4, CPUs: 8, GPUs: 2, Nodes: []string{"gpu01"}, Begun: clitest.Now.Add(-70 * time.Minute), Ended: clitest.Now.Add(-61 * time.Minute), Code: 137, Signal: 9,
			Use: &job.StepUse{UserMS: 90_500, SystemMS: 1500, MaxRSSKiB: 20480}},
	}
}

func TestAcct(t *testing.T) {
	all := "id,name%6,user,project,state,exit,exitcode,reason,submit,start,end,elapsed,elapsedraw,wait,limit,gpus,cpus,mem,nodes,nodelist,cluster,qos,priority," +
		"peakmem,cputime,gpuutil,gpuutilmax,gpumem,energy,gpuhours,billed,uuid"
	for name, run := range map[string]func(context.Context, *cli.App) error{
		"acct": func(ctx context.Context, a *cli.App) error { return (&List{}).Run(ctx, a) },
		"acct_steps": func(ctx context.Context, a *cli.App) error {
			return (&List{Steps: true, Format: "id,name%10,state,exit,elapsed,cpus,gpus,cputime,peakmem,nodelist"}).Run(ctx, a)
		},
		"acct_step":    func(ctx context.Context, a *cli.App) error { return (&List{IDs: []string{"9.1"}}).Run(ctx, a) },
		"acct_no_step": func(ctx context.Context, a *cli.App) error { return (&List{IDs: []string{"9.7"}}).Run(ctx, a) },
		"acct_all":     func(ctx context.Context, a *cli.App) error { return (&List{Format: all}).Run(ctx, a) },
		"acct_slurm": func(ctx context.Context, a *cli.App) error {
			return (&List{Format: "JobID,JobName%5,State,ExitCode,MaxRSS,TotalCPU,Account", NoHeader: true}).Run(ctx, a)
		},
		"acct_csv": func(ctx context.Context, a *cli.App) error {
			return (&List{CSV: true, Format: "id,name,user,end,billed,gpuutil"}).Run(ctx, a)
		},
		"acct_json": func(ctx context.Context, a *cli.App) error {
			a.Output.JSON = true
			return (&List{Limit: 1}).Run(ctx, a)
		},
		"acct_ids": func(ctx context.Context, a *cli.App) error { a.Output.IDs = true; return (&List{}).Run(ctx, a) },
		"acct_one": func(ctx context.Context, a *cli.App) error {
			return (&List{IDs: []string{"9"}, Format: "id,state,exit"}).Run(ctx, a)
		},
		"acct_unknown": func(ctx context.Context, a *cli.App) error { return (&List{Format: "id,elapsd"}).Run(ctx, a) },
		"acct_state":   func(ctx context.Context, a *cli.App) error { return (&List{States: []string{"R"}}).Run(ctx, a) },
		"acct_time":    func(ctx context.Context, a *cli.App) error { return (&List{Start: "yesterdayish"}).Run(ctx, a) },
		"acct_span":    func(ctx context.Context, a *cli.App) error { return (&List{Start: "today", End: "2d"}).Run(ctx, a) },
		"acct_both": func(ctx context.Context, a *cli.App) error {
			return (&List{IDs: []string{"9"}, Users: []string{"ann"}}).Run(ctx, a)
		},
		"acct_forms": func(ctx context.Context, a *cli.App) error {
			a.Output.JSON = true
			return (&List{CSV: true}).Run(ctx, a)
		},
		"acct_export": func(ctx context.Context, a *cli.App) error { return (&Export{}).Run(ctx, a) },
		"usage": func(ctx context.Context, a *cli.App) error {
			return (&Usage{By: []string{"project", "model"}}).Run(ctx, a)
		},
		"usage_csv": func(ctx context.Context, a *cli.App) error {
			return (&Usage{By: []string{"project", "model"}, CSV: true}).Run(ctx, a)
		},
		"usage_json": func(ctx context.Context, a *cli.App) error { a.Output.JSON = true; return (&Usage{}).Run(ctx, a) },
		"usage_ids":  func(ctx context.Context, a *cli.App) error { a.Output.IDs = true; return (&Usage{}).Run(ctx, a) },
		"shares":     func(ctx context.Context, a *cli.App) error { return (&Shares{}).Run(ctx, a) },
		"shares_json": func(ctx context.Context, a *cli.App) error {
			a.Output.JSON = true
			return (&Shares{Projects: []string{"lab"}}).Run(ctx, a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := clitest.Start(t, &ledger{jobs: pastJobs(), inner: &clitest.Fake{Jobs: sampleJobs()}})
			b.Golden(t, name, b.App.Finish(cli.Program{Name: "gacct"}, run(t.Context(), b.App)))
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
		l := &ledger{jobs: pastJobs(), inner: &clitest.Fake{}}
		b := clitest.Start(t, l)
		b.App.Output.IDs = true
		if err := (&List{Limit: limit}).Run(t.Context(), b.App); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.out, strings.Join(strings.Fields(b.Out.String()), " ")); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
		if n := strings.Count(want.asks, ",") + 1; n != len(l.seen) || strings.Contains(want.asks, "newest") != strings.Contains(l.seen[0], "newest=true") {
			t.Errorf("limit %d asked %q", limit, l.seen)
		}
	}
}

func TestEff(t *testing.T) {
	run := func(name string, state job.State, used *api.Used) {
		t.Run(name, func(t *testing.T) {
			d := clitest.SampleJobs()[4]
			d.State, d.Used = state, used
			if used == nil {
				d.Attempts = nil
			} else {
				used.Cores, used.MemBytes = 8, 32<<30
			}
			b := clitest.Start(t, &clitest.Fake{Jobs: []api.JobDetail{d}})
			b.Golden(t, name, b.App.Finish(cli.Program{Name: "gacct"}, (&Eff{IDs: []string{"9"}}).Run(t.Context(), b.App)))
		})
	}
	gpu := &node.GPUUse{Utilization: 12, MaxUtilization: 99, MaxMem: 20 << 30, Mem: 80 << 30, EnergyJ: 3.6e6, Samples: 100}
	run("eff_low", job.Finished, &api.Used{ElapsedS: 3600, CPUTimeS: 4000, PeakMem: 3 << 30, GPU: gpu, Advice: []string{"1.1 of its 8 cores were busy: --cpus 2 would do"}})
	run("eff_limit", job.Finished, &api.Used{ElapsedS: 3600, CPUTimeS: 8 * 3500, PeakMem: 31 << 30, Advice: []string{"it came within 3% of its memory: --mem 38G is safer", "it took 25% of its time limit: -t 1:19:00 lets it start sooner"}})
	run("eff_runs", job.Running, &api.Used{ElapsedS: 600, CPUTimeS: 8 * 590, PeakMem: 20 << 30, GPU: &node.GPUUse{Samples: 4, Simulated: true, EnergyJ: 42000}})
	run("eff_short", job.Failed, &api.Used{ElapsedS: 3, CPUTimeS: 1, Advice: []string{"it ran for 3 s: too short for advice"}})
	run("eff_none", job.Queued, nil)
}
