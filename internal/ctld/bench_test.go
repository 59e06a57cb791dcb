package ctld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// bench is a controller in a directory of its own.
func bench(b *testing.B, dir string) (*Server, *client.Client, func()) {
	b.Helper()
	cfg := DefaultConfig()
	cfg.Dir, cfg.Socket, cfg.Listen, cfg.ReserveMiB = dir, "", "", 0
	server, err := Open(func() (Config, error) { return cfg, nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }() // ended by the cleanup
	stop := sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, server.Close()); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	return server, &client.Client{Address: server.Addresses()[0]}, stop
}

// fill queues n jobs of a few users and shapes, past the network.
func fill(b *testing.B, s *Server, n int) {
	b.Helper()
	var g errgroup.Group
	g.SetLimit(64)
	for i := range n {
		g.Go(func() error {
			sub, err := job.Parse(hello(1 + i%8).Job)
			if err != nil {
				return err
			}
			ev, err := s.submitEvent(identity{user: fmt.Sprintf("user%d", i%20)}, &submitInput{}, &sub)
			if err != nil {
				return err
			}
			_, err = s.loop.do(b.Context(), ev)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSubmit is durable submissions through the API by 8 clients: each is
// acknowledged only when it is on disk. Reports jobs/s, and heap bytes a job.
func BenchmarkSubmit(b *testing.B) {
	server, c, _ := bench(b, b.TempDir())
	before := heap()
	b.SetParallelism(8 / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	began := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		c := &client.Client{Address: server.Addresses()[0]}
		for pb.Next() {
			if _, err := c.Submit(b.Context(), hello(1), ""); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "jobs/s")
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/float64(b.N), "heap-B/job")
	l, err := c.Jobs(b.Context(), client.JobFilter{Limit: 1})
	if err != nil || l.Total != b.N {
		b.Errorf("%d jobs were acknowledged, the queue has %d (%v)", b.N, l.Total, err)
	}
}

// BenchmarkStart is a controller's start with 100,000 queued jobs, until it
// answers.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	s, _, stop := bench(b, dir)
	fill(b, s, 100_000)
	stop()
	b.ResetTimer()
	for range b.N {
		_, c, stop := bench(b, dir)
		if l, err := c.Jobs(b.Context(), client.JobFilter{Limit: 1}); err != nil || l.Total != 100_000 {
			b.Errorf("%d jobs are there, %v", l.Total, err)
		}
		b.StopTimer()
		stop()
		b.StartTimer()
	}
}

// BenchmarkQueue10k is a list, and then a cancel, of 10,000 queued jobs as a
// client sees it.
func BenchmarkQueue10k(b *testing.B) {
	for range b.N {
		b.StopTimer()
		s, c, stop := bench(b, b.TempDir())
		fill(b, s, 10_000)
		b.StartTimer()
		began := time.Now()
		l, err := c.Jobs(b.Context(), client.JobFilter{})
		if err != nil || len(l.Jobs) != 10_000 {
			b.Fatal(len(l.Jobs), err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/list")
		began = time.Now()
		r, err := c.Action(b.Context(), "cancel", &api.ActionRequest{State: "QUEUED"})
		if err != nil || len(r.Results) != 10_000 {
			b.Fatal(len(r.Results), err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/cancel")
		stop()
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
