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
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobs"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// bench is a controller in a directory of its own.
func bench(b *testing.B, dir string) (*Server, *client.Client, func()) {
	b.Helper()
	cfg := site.Default()
	cfg.Dir, cfg.Socket, cfg.Listen, cfg.ReserveMiB = dir, "", "", 0
	server, err := Open(func() (site.Config, error) { return cfg, nil }, slog.New(slog.DiscardHandler))
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
	submissions := &jobs.Submissions{Meters: s.meters, Conf: s.rules.Now, Rights: s.rights, Loop: s.loop, Jobs: s.jobs}
	var g errgroup.Group
	g.SetLimit(64)
	for i := range n {
		g.Go(func() error {
			ctx := access.WithCaller(b.Context(), access.Identity{User: fmt.Sprintf("user%d", i%20)}, "")
			_, err := submissions.Submit(ctx, &jobs.SubmitInput{Body: *hello(1 + i%8)})
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

// BenchmarkHistory reads a page of jobs that ended, out of a million: the last
// of all, those of one user among a thousand, and those of nobody.
func BenchmarkHistory(b *testing.B) {
	server, c, _ := bench(b, b.TempDir())
	const count = 1_000_000
	var rs []state.Record
	for n := range job.Number(count) {
		n += 1_000_000
		user := fmt.Sprintf("u%d", n%1000)
		ended := fmt.Sprintf(`{"u":%q,"p":"default","n":"train-%d","s":"FINISHED"}`, user, n)
		value := fmt.Sprintf(`{"n":%d,"id":"%032x","name":"train-%d","owner":{"user":%q,"project":"default"},"request":{"shape":{"milliCpu":1000},"limit":60000},`+
			`"state":"FINISHED","v":3,"submitted":1,"since":2,"ended":%d,"attempt":{"attempt":1,"ranks":[{"alloc":{"node":"n1"},"phase":"ended"}],"start":1}}`, n, n, n, user, n)
		rs = append(rs, state.Record{Kind: state.KindEnded, Seq: uint64(n), Job: n, Value: []byte(ended)},
			state.Record{Kind: state.KindHistory, Job: n, Value: []byte(value)})
		if len(rs) >= 20_000 {
			if err := server.store.Commit(rs); err != nil {
				b.Fatal(err)
			}
			rs = rs[:0]
		}
	}
	for name, f := range map[string]client.HistoryFilter{
		"last-100": {Newest: true, Limit: 100}, "user-100": {Newest: true, Limit: 100, Users: []string{"u7"}}, "nobody": {Newest: true, Users: []string{"none"}},
		"page-1000": {},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for f.After = ""; ; {
					h, err := c.History(b.Context(), f)
					if err != nil {
						b.Fatal(err)
					}
					if f.After = h.Next; h.Next == "" || len(h.Jobs) >= 100 {
						break
					}
				}
			}
		})
	}
}
