package ctld

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"gbatch/internal/client"
)

// BenchmarkSubmit is durable submissions through the API by 8 clients: each is
// acknowledged only when it is on disk. Reports jobs/s, and heap bytes a job.
func BenchmarkSubmit(b *testing.B) {
	cfg := DefaultConfig()
	cfg.Dir, cfg.Listen, cfg.ReserveMiB = b.TempDir(), "", 0
	server, err := Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }() // ended by cancel
	defer func() {
		cancel()
		if err := errors.Join(<-done, server.Close()); err != nil {
			b.Error(err)
		}
	}()
	before := heap()
	b.SetParallelism(8 / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	began := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		c := &client.Client{Address: server.Addresses()[0]}
		for pb.Next() {
			if _, err := c.Submit(ctx, hello(1), ""); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "jobs/s")
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/float64(b.N), "heap-B/job")
	l, err := (&client.Client{Address: server.Addresses()[0]}).Jobs(ctx, client.JobFilter{Limit: 1})
	if err != nil || l.Total != b.N {
		b.Errorf("%d jobs were acknowledged, the queue has %d (%v)", b.N, l.Total, err)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
