package sim

import (
	"fmt"
	"io"
	"slices"

	"gbatch/sched"
)

// Report is the figures of a replay.
type Report struct {
	Jobs    int `json:"jobs"`    // that were submitted
	Started int `json:"started"` // of these, the ones that ran
	Dropped int `json:"dropped"` // the ones that were refused or found no room

	AvgWait     float64 `json:"avg_wait_s"` // of the jobs that ran
	P50Wait     float64 `json:"p50_wait_s"`
	P95Wait     float64 `json:"p95_wait_s"`
	P99Wait     float64 `json:"p99_wait_s"`
	MaxWait     float64 `json:"max_wait_s"`
	AvgSlowdown float64 `json:"avg_bounded_slowdown"` // max(1, (wait+run)/max(run, 10 s))
	P95Slowdown float64 `json:"p95_bounded_slowdown"`

	Utilization   float64 `json:"utilization"` // of GPUs, or where there are none of cores, 0..1, over the makespan
	Makespan      float64 `json:"makespan_s"`  // first submission to last end
	GPUAllocation float64 `json:"gpu_allocation_pct"`
	Fragmented    float64 `json:"fragmented_pct"`

	Rounds   int     `json:"rounds"`
	RoundP50 float64 `json:"round_ms_p50"`
	RoundP99 float64 `json:"round_ms_p99"`
	Wall     float64 `json:"wall_s"`

	ETAErrorP50 float64 `json:"eta_error_s_p50"` // of |start - first estimate|
	ETAErrorP90 float64 `json:"eta_error_s_p90"`
	ETACoverage float64 `json:"eta_coverage"` // of the jobs that had to wait, the part that got an estimate
	ETAKept     float64 `json:"eta_kept"`     // of these, the part that started by then

	Users    int     `json:"users"`
	Fairness float64 `json:"fairness"` // Jain's index of the users' mean slowdowns: 1 is alike for all

	Seed     uint64   `json:"seed"`
	Policy   string   `json:"policy"`
	Workload string   `json:"workload,omitempty"`
	Notes    []string `json:"notes,omitempty"`

	Unstarted []Unstarted `json:"unstarted,omitempty"` // why jobs never started

	Groups []Group `json:"groups,omitempty"` // where the log has waits to compare with
}

// tau is the run time below which slowdown is not told apart.
const tau = 10 * sched.Second

// slowdown is the bounded slowdown of a job that waited and ran for so long.
func slowdown(wait, run sched.Time) float64 {
	return max(1, float64(wait+run)/float64(max(run, tau)))
}

// NewReport works out the figures.
func NewReport(cfg config, r result) Report {
	out := Report{Jobs: len(cfg.Jobs), Rounds: r.Rounds, Wall: float64(r.WallNS) / 1e9}
	var waits []sched.Time
	var slow []float64
	var wait sched.Time
	var sum, cores, gpus float64
	first, waited := sched.Never, 0
	for i, o := range r.Outcomes {
		j := &cfg.Jobs[i]
		first = min(first, j.Submit)
		if o.Start < 0 {
			out.Dropped++
			continue
		}
		w := o.Start - j.Submit
		waits, wait = append(waits, w), wait+w
		if w > 0 {
			waited++
		}
		if o.End < 0 {
			continue
		}
		s := slowdown(w, o.End-o.Start)
		slow, sum = append(slow, s), sum+s
		n := float64(j.Shape.Ranks())
		cores += n * float64(j.Shape.MilliCPU) * float64(o.End-o.Start)
		gpus += n * float64(j.Shape.MilliGPU) * float64(o.End-o.Start)
	}
	out.Started, out.Unstarted = len(waits), unstarted(cfg, r)
	slices.Sort(waits)
	slices.Sort(slow)
	if len(waits) > 0 {
		out.AvgWait = float64(wait) / float64(len(waits)) / 1000
		out.P50Wait, out.P95Wait, out.P99Wait = seconds(waits, 50), seconds(waits, 95), seconds(waits, 99)
		out.MaxWait = seconds(waits, 100)
	}
	if len(slow) > 0 {
		out.AvgSlowdown, out.P95Slowdown = sum/float64(len(slow)), rank(slow, 95)
	}
	if span := r.LastEnd - first; span > 0 {
		out.Makespan = float64(span) / 1000
		if r.GPUs > 0 {
			out.Utilization = gpus / float64(r.GPUs) / float64(span)
		} else if r.Cores > 0 {
			out.Utilization = cores / float64(r.Cores) / float64(span)
		}
	}
	out.times(r)
	out.promises(r, waited)
	out.fairness(cfg, r)
	if r.GPUs > 0 {
		out.GPUAllocation = 100 * float64(r.Held.MilliGPU) / float64(r.GPUs)
		out.Fragmented = 100 * fragmented(cfg.Jobs, r.Held.Free) / float64(r.GPUs)
	}
	return out
}

func (out *Report) times(r result) {
	if len(r.RoundNS) == 0 {
		return
	}
	ns := slices.Sorted(slices.Values(r.RoundNS))
	out.RoundP50, out.RoundP99 = float64(rank(ns, 50))/1e6, float64(rank(ns, 99))/1e6
}

func (out *Report) promises(r result, waited int) {
	if len(r.Missed) == 0 {
		return
	}
	kept := 0
	errs := make([]sched.Time, len(r.Missed))
	for i, m := range r.Missed {
		errs[i] = max(m, -m)
		if m <= 0 {
			kept++
		}
	}
	slices.Sort(errs)
	out.ETAErrorP50, out.ETAErrorP90 = seconds(errs, 50), seconds(errs, 90)
	out.ETAKept = float64(kept) / float64(len(errs))
	out.ETACoverage = min(1, float64(len(errs))/float64(max(waited, 1)))
}

// fairness is Jain's index over the mean slowdown of each user.
func (out *Report) fairness(cfg config, r result) {
	index := map[string]int{}
	var sums, counts []float64
	for i, o := range r.Outcomes {
		if o.End < 0 || o.Start < 0 {
			continue
		}
		j := &cfg.Jobs[i]
		u, ok := index[j.User]
		if !ok {
			u = len(sums)
			index[j.User] = u
			sums, counts = append(sums, 0), append(counts, 0)
		}
		sums[u] += slowdown(o.Start-j.Submit, o.End-o.Start)
		counts[u]++
	}
	var s, q float64
	for i := range sums {
		x := sums[i] / counts[i]
		s += x
		q += x * x
	}
	out.Users = len(sums)
	if q > 0 {
		out.Fairness = s * s / (float64(len(sums)) * q)
	}
}

// rank is the nearest-rank percentile of sorted values.
func rank[T any](sorted []T, pct int) T {
	return sorted[min(max((len(sorted)*pct+99)/100-1, 0), len(sorted)-1)]
}

func seconds(sorted []sched.Time, pct int) float64 { return float64(rank(sorted, pct)) / 1000 }

// fragmented is the GPU thousandths that are free and that the average GPU job
// of the workload could not use: on nodes without room for it, or on GPUs of
// which too little is left.
func fragmented(jobs []Job, free []Left) float64 {
	weight := map[*sched.Shape]float64{}
	total := 0.0
	var shapes []*sched.Shape
	for i := range jobs {
		if x := jobs[i].Shape; x.MilliGPU > 0 {
			if weight[x] == 0 {
				shapes = append(shapes, x)
			}
			weight[x]++
			total++
		}
	}
	sum := 0.0
	for _, x := range shapes {
		var lost int64
		for i := range free {
			lost += free[i].lostTo(x)
		}
		sum += weight[x] * float64(lost)
	}
	return sum / max(total, 1)
}

// lostTo is the free GPU thousandths of a node that a rank cannot use.
func (l *Left) lostTo(x *sched.Shape) int64 {
	need := min(x.MilliGPU, sched.WholeGPU)
	var all, good, n int64
	for _, g := range l.GPUs {
		all += g
		if g >= need {
			good += g
			n++
		}
	}
	allowed := len(x.GPUModels) == 0 || slices.Contains(x.GPUModels, l.Model)
	if !allowed || l.MilliCPU < x.MilliCPU || l.MemMiB < x.MemMiB || n*sched.WholeGPU < x.MilliGPU {
		return all
	}
	return all - good
}

// WriteWaits writes what became of each job as CSV, times in seconds since the
// log's begin; start, wait and end are empty where there are none.
func WriteWaits(w io.Writer, cfg config, r result) error {
	if _, err := fmt.Fprintln(w, "job_id,submit_s,wait_s,start_s,end_s,user"); err != nil {
		return err
	}
	for i, o := range r.Outcomes {
		j := &cfg.Jobs[i]
		wait, start, end := "", "", ""
		if o.Start >= 0 {
			wait, start = decimal(int64(o.Start-j.Submit)), decimal(int64(o.Start))
		}
		if o.End >= 0 {
			end = decimal(int64(o.End))
		}
		if _, err := fmt.Fprintf(w, "%s,%s,%s,%s,%s,%s\n", j.Name, decimal(int64(j.Submit)), wait, start, end, j.User); err != nil {
			return err
		}
	}
	return nil
}

// decimal is milliseconds in seconds, without zeros at the end.
func decimal(ms int64) string {
	if ms%1000 == 0 {
		return fmt.Sprint(ms / 1000)
	}
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}
