package ctld

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/node"
)

// BenchmarkWhatIf asks what 64 nodes more would be where 100,000 jobs of an hour wait for
// 500 nodes of 16 processors: how long the answer takes, how far it looked by then, what
// memory it had, and what the slowest answer to others was meanwhile.
func BenchmarkWhatIf(b *testing.B) {
	s := benchSite(b)
	queued := 100_000
	if testing.Short() {
		queued = 2000
	}
	for i := range 500 {
		name := fmt.Sprintf("n%d", i)
		inv := &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, CPUs: 16, MemBytes: 64 << 30}
		if _, err := s.NodeSync(b.Context(), name, &api.SyncRequest{Instance: "i", Boot: "b", InventoryHash: "h", Inventory: inv}); err != nil {
			b.Fatal(err)
		}
	}
	fill(b, s.server, queued)
	s.Client.Timeout = time.Minute
	for b.Loop() {
		before := heap()
		var most uint64
		var slowest time.Duration
		over := make(chan struct{})
		var other sync.WaitGroup
		other.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
				}
				began := time.Now()
				if _, err := s.Status(b.Context()); err != nil {
					b.Error(err)
				}
				slowest = max(slowest, time.Since(began))
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		})
		began := time.Now()
		w, err := client.WhatIf(b.Context(), s.Client, api.WhatIfRequest{AddNodes: []string{"64x4xh100"}})
		took := time.Since(began)
		close(over)
		other.Wait()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric(w.Until.Sub(w.Now).Hours(), "hours-ahead")
		b.ReportMetric(float64(w.All.Jobs), "jobs")
		b.ReportMetric(float64(w.All.StartedBefore), "start-as-is")
		b.ReportMetric(float64(w.All.StartedAfter), "start-then")
		b.ReportMetric(float64(int64(most)-before)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(slowest.Milliseconds()), "slowest-other-ms")
		if !w.Whole {
			b.Logf("looked until %s of what starts", w.Until)
		}
	}
}
