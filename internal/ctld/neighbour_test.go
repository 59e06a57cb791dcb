package ctld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/site"
)

// BenchmarkNeighbour is what three users notice of a fourth, over TLS, with 10,000
// jobs in the queue: each submits a job and lists the queue's first 100, ten times a
// second, and then the fourth does so a hundred times a second. Reports the longest
// of 100 requests of the others in both, and how they compare.
func BenchmarkNeighbour(b *testing.B) {
	cfg := site.Default()
	cfg.Dir, cfg.Socket, cfg.Listen, cfg.ReserveMiB = b.TempDir(), "", "127.0.0.1:0", 0
	server, err := Open(func() (site.Config, error) { return cfg, nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }() // ended below
	defer func() {
		cancel()
		if err := errors.Join(<-done, server.Close()); err != nil {
			b.Error(err)
		}
	}()
	fill(b, server, 10_000)
	tokens := &access.Tokens{Conf: server.rules.Now, Keys: server.keys, Loop: server.loop, Now: time.Now}
	secret := func(user string) string {
		boss := access.WithCaller(b.Context(), access.Identity{User: "root", Role: access.RoleAdmin}, "")
		t, err := tokens.Create(boss, &access.TokenInput{Body: api.TokenRequest{Use: api.TokenUser, User: user}})
		if err != nil {
			b.Fatal(err)
		}
		return t.Secret
	}
	n := &neighbours{b: b, address: server.Addresses()[1], secrets: []string{secret("u0"), secret("u1"), secret("u2"), secret("u3")}}
	for b.Loop() {
		n.load(1) // connections, and what is made once
		before, after := n.load(1), n.load(10)
		for op, name := range []string{"submit", "list"} {
			b.ReportMetric(float64(before[op].Microseconds())/1000, name+"-p99-ms")
			b.ReportMetric(float64(after[op].Microseconds())/1000, name+"-p99-beside-tenfold-ms")
			b.ReportMetric(float64(after[op])/float64(before[op]), name+"-ratio")
		}
	}
}

// neighbours are users that load a controller.
type neighbours struct {
	b       *testing.B
	address string
	secrets []string
}

const (
	neighbourEvery = 100 * time.Millisecond
	neighbourTimes = 100
)

// load has each user do their work, the first as many times as much at once, and
// gives the 99th percentile of the others' submissions and lists.
func (n *neighbours) load(busy int) (p99 [2]time.Duration) {
	var mu sync.Mutex
	var took [2][]time.Duration
	var all sync.WaitGroup
	for u, secret := range n.secrets {
		workers := 1
		if u == 0 {
			workers = busy
		}
		for range workers {
			c := &client.Client{Address: n.address, Token: secret}
			all.Go(func() { // ends when all is done, below
				defer c.Close()
				tick := time.NewTicker(neighbourEvery)
				defer tick.Stop()
				for range neighbourTimes {
					<-tick.C
					began := time.Now()
					_, err := c.Submit(n.b.Context(), hello(1), "")
					submitted := time.Now()
					_, lerr := c.Jobs(n.b.Context(), client.JobFilter{Limit: 100})
					if err = errors.Join(err, lerr); err != nil {
						n.b.Error(fmt.Errorf("user %d: %w", u, err))
						return
					}
					if u > 0 {
						mu.Lock()
						took[0], took[1] = append(took[0], submitted.Sub(began)), append(took[1], time.Since(submitted))
						mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	for op := range took {
		slices.Sort(took[op])
		p99[op] = took[op][len(took[op])*99/100]
	}
	return p99
}
