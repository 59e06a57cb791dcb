package sim

import (
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// These compare with what others published. They need the logs themselves,
// which are not ours: see docs/simulator.md.

func near(t *testing.T, what string, got, want, percent float64) {
	t.Helper()
	if math.Abs(got-want) > want*percent/100 {
		t.Errorf("%s is %.4f, published is %.4f: more than %g %% off", what, got, want, percent)
	}
}

func replay(t *testing.T, o Options, w workload, nodes []Node) (Report, result) {
	t.Helper()
	cfg, r, err := o.Replay(w, nodes, Watch{})
	if err != nil {
		t.Fatal(err)
	}
	return NewReport(cfg, r), r
}

// publishedWaits is a column of a published schedule, in seconds, by job.
func publishedWaits(t *testing.T, log, column string) map[string]float64 {
	t.Helper()
	rows, err := csv.NewReader(traceFile(t, log+".waits.csv.gz")).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for i, name := range rows[0] {
		if name != column {
			continue
		}
		for _, row := range rows[1:] {
			if out[row[0]], err = strconv.ParseFloat(row[i], 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// TestWaitsEqualThePublished proves that the wait of every single job is that of
// the published simulator.
func TestWaitsEqualThePublished(t *testing.T) {
	for _, tc := range []struct{ policy, estimates, column string }{
		{"fcfs", "user", "fcfs_pyssrun"},
		{"easy", "user", "easy"},
		{"easy", "exact", "easy_clair"},
		{"easy-sjbf", "user", "sjbf_pyssrun"},
		{"easy-sjbf", "exact", "sjbf_clair"},
	} {
		for _, log := range []string{"KTH-SP2", "CTC-SP2"} {
			t.Run(log+"/"+tc.column, func(t *testing.T) {
				if testing.Short() && log != "KTH-SP2" {
					t.Skip("a long replay, left out of -short")
				}
				w := readTrace(t, log)
				want := publishedWaits(t, log, tc.column)
				_, r := replay(t, Options{Policy: tc.policy, Estimates: tc.estimates, Placement: "bestfit"}, w, pool(w.Procs))
				bad := 0
				for i, o := range r.Outcomes {
					j := &w.Jobs[i]
					if wait := float64(o.Start-j.Submit) / 1000; wait != want[j.Name] {
						if bad++; bad <= 3 {
							t.Errorf("job %s waits %g s, published are %g s", j.Name, wait, want[j.Name])
						}
					}
				}
				if bad > 0 {
					t.Errorf("%d of %d jobs wait longer or shorter", bad, len(w.Jobs))
				}
			})
		}
	}
}

func TestConservativeIsNearThePublished(t *testing.T) {
	w := readTrace(t, "KTH-SP2")
	rep, _ := replay(t, Options{Policy: "conservative", Estimates: "user", Placement: "bestfit"}, w, pool(w.Procs))
	near(t, "mean bounded slowdown", rep.AvgSlowdown, 88.9973, 5)
}

// TestGbatchShortensWaits proves what gbatch mode is for, and that nobody pays
// with a wait that is much longer than the longest under EASY.
func TestGbatchShortensWaits(t *testing.T) {
	for _, tc := range []struct {
		log              string
		easy, sjbf, wait float64
	}{
		{"KTH-SP2", 92.5765, 69.4054, 262_194},
		{"CTC-SP2", 49.5713, 30.0411, 303_954},
	} {
		t.Run(tc.log, func(t *testing.T) {
			w := readTrace(t, tc.log)
			rep, _ := replay(t, Options{Policy: "gbatch", Estimates: "predicted", Placement: "gbatch"}, w, pool(w.Procs))
			if rep.AvgSlowdown > 0.7*tc.easy || rep.AvgSlowdown > tc.sjbf || rep.MaxWait > 1.5*tc.wait {
				t.Errorf("mean bounded slowdown %.2f, longest wait %.0f s: want 30 %% below EASY's %.2f, below EASY-SJBF's %.2f, and at most 1.5 times %.0f s",
					rep.AvgSlowdown, rep.MaxWait, tc.easy, tc.sjbf, tc.wait)
			}
		})
	}
}

func openb(t *testing.T, pods, placement string, seed uint64) Report {
	t.Helper()
	src := Source{Format: "openb", Trace: traceFile(t, "openb_pod_list_"+pods+".csv.gz"),
		List: traceFile(t, "openb_node_list_gpu_node.csv.gz"), Load: 1.3, Seed: seed}
	if seed == 0 {
		src.Order = traceFile(t, "ref_default_tune1.3_seed42_FGD.csv.gz")
	}
	w, nodes, err := src.Read()
	if err != nil {
		t.Fatal(err)
	}
	rep, _ := replay(t, Options{Policy: "gbatch", Estimates: "user", Placement: placement, Seed: seed}, w, nodes)
	return rep
}

func TestFragmentationGradientDescent(t *testing.T) {
	fgd := openb(t, "default", "fgd", 0).GPUAllocation
	if math.Abs(fgd-95.29) > 0.3 {
		t.Errorf("FGD allocates %.2f %% of the GPUs, published are 95.29 %%", fgd)
	}
	if got := openb(t, "default", "gbatch", 0).GPUAllocation; got < fgd {
		t.Errorf("gbatch allocates %.2f %% of the GPUs, FGD %.2f %%", got, fgd)
	}
}

// TestPhillyQueueEqualsThePublished replays first come, first served, and proves
// that the jobs of one second come in the published order without being told it.
func TestPhillyQueueEqualsThePublished(t *testing.T) {
	src := Source{Format: "philly", Trace: traceFile(t, "philly_sia.csv.gz"), Nodes: 80, PerNode: 8}
	w, nodes, err := src.Read()
	if err != nil {
		t.Fatal(err)
	}
	ordered, err := w.phillyOrder(traceFile(t, "ref_single_80nodes_fifo.csv.gz"), 8)
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b Job) bool { return a.Submit == b.Submit && a.Run == b.Run && cmp.Equal(a.Shape, b.Shape) }
	if !slices.EqualFunc(w.Jobs, ordered.Jobs, same) {
		t.Errorf("the order of %d jobs is not that of the published schedule", len(w.Jobs))
	}
	fifo, _ := replay(t, Options{Policy: "fcfs", Estimates: "user"}, w, nodes)
	near(t, "mean wait", fifo.AvgWait, 14_833.95, 0.01)
	ours, _ := replay(t, Options{Policy: "gbatch", Estimates: "predicted"}, w, nodes)
	if ours.AvgWait > fifo.AvgWait/2 {
		t.Errorf("gbatch mode waits %.0f s, want less than half of %.0f s", ours.AvgWait, fifo.AvgWait)
	}
}
