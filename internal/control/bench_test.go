package control

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkArray runs an array of 100,000 tasks of one GPU on 1,000 GPUs: what
// it costs to keep, and what its rounds and ends cost.
func BenchmarkArray(b *testing.B) {
	for b.Loop() {
		cfg := testConfig()
		cfg.NoRecords, cfg.MaxQueued, cfg.KeepCount = true, 1_000_000, 1000
		c, err := New(cfg, 1)
		if err != nil {
			b.Fatal(err)
		}
		for i := range 125 {
			inv := &node.Inventory{Hostname: fmt.Sprint("n", i), Cluster: 1, Bridge: true, Gang: true, CPUs: 128, MemBytes: 1 << 40}
			for g := range 8 {
				inv.GPUs = append(inv.GPUs, node.GPU{UUID: fmt.Sprintf("GPU-%d-%d", i, g), Model: "H100", Index: g, MemBytes: 80 << 30, NUMA: -1})
			}
			Apply(c, 1000, NodeSync{Name: fmt.Sprintf("n%03d", i), Instance: "i", Hash: "h", Inventory: inv})
		}
		spec := &job.Spec{Name: "a", Gbatch: &job.Gbatch{Tasks: &job.Tasks{Indexes: "0-99999"}}}
		spec.Request.Resources = job.Resources{CPUs: 1, GPUs: 1, CPUMemoryGB: 1}
		before := heapBytes()
		if _, r, _ := Apply(c, 1000, Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")}); r != nil {
			b.Fatal(r)
		}
		b.ReportMetric(float64(heapBytes()-before)/1024, "KiB-queued")
		var longest, rounds time.Duration
		n, now := 0, int64(1000)
		for p := c.jobs.get(1); !p.State.Final(); p = c.jobs.get(1) {
			now += 1000
			for c.Due() {
				began := time.Now()
				c.Schedule(sched.Time(now))
				took := time.Since(began)
				longest, rounds, n = max(longest, took), rounds+took, n+1
			}
			Apply(c, sched.Time(now), Tick{})
			for _, j := range c.arrays.children(1) {
				if j.State.Active() {
					Apply(c, sched.Time(now), NodeSync{Name: j.Attempt.Ranks[0].Alloc.Node, Instance: "i", Hash: "h", Ranks: []node.RankStatus{{
						ID: j.RankID(0), Phase: node.PhaseEnded, Exit: &node.Exit{StartedMS: now, EndedMS: now}}}})
				}
			}
		}
		b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-round")
		b.ReportMetric(float64(rounds.Microseconds())/1000/float64(n), "ms/round")
		b.ReportMetric(float64(n), "rounds")
		b.ReportMetric(float64(heapBytes())/(1<<20), "MiB-after")
	}
}
