package ctld

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
	"gbatch/internal/web"
)

// pageSite has 100,000 queued jobs and 5,000 nodes; with -short fewer.
func pageSite(b *testing.B) *testSite {
	b.Helper()
	s := &testSite{cfg: site.Default()}
	s.cfg.Dir, s.cfg.Socket, s.cfg.Listen, s.cfg.ReserveMiB = b.TempDir(), "", "127.0.0.1:0", 0
	s.cfg.Operators = byName("root")
	server, err := Open(func() (site.Config, error) { return s.cfg, nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }() // ended by the cleanup
	b.Cleanup(func() {
		cancel()
		<-done
		_ = server.Close()
	})
	s.server, s.Client = server, &client.Client{Address: server.Addresses()[0]}
	queued, nodes := 100_000, 5000
	if testing.Short() {
		queued, nodes = 2000, 1000
	}
	fill(b, server, queued)
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		inv := &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, CPUs: 0, MemBytes: 1 << 20}
		for g := range 8 {
			inv.GPUs = append(inv.GPUs, node.GPU{UUID: fmt.Sprintf("GPU-%d-%d", i, g), Index: g, Model: "H100", MemBytes: 80 << 30, NUMA: -1})
		}
		if _, err := s.NodeSync(b.Context(), name, &api.SyncRequest{Instance: "i", Boot: "b", InventoryHash: "h", Inventory: inv}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkPage is the web page in Chromium: from the request of a page to its first
// paint and to its first line, a jump into the middle of the list, and from a change
// to its line.
func BenchmarkPage(b *testing.B) {
	path, err := exec.LookPath("chromium")
	if err != nil || !web.Built() {
		b.Skip("SKIPPED: chromium is missing, or this was not built with the web page: scripts/build-web, and -tags embedweb")
	}
	s := pageSite(b)
	ctx, cancel := chromedp.NewExecAllocator(b.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(b.TempDir()), chromedp.NoSandbox, chromedp.IgnoreCertErrors)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	script := func(expression string) (v float64) {
		b.Helper()
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		v, err := chromedp.Run(ctx, chromedp.Evaluate[float64](expression, chromedp.EvalAwaitPromise))
		if err != nil {
			b.Fatalf("%s: %v", expression, err)
		}
		return v
	}
	token, err := s.CreateToken(b.Context(), api.TokenRequest{Use: api.TokenLogin})
	if err != nil {
		b.Fatal(err)
	}
	base, _, _ := strings.Cut(s.remote(), "#")
	open := func(url string) {
		b.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
			b.Fatal(err)
		}
	}
	const seen = `new Promise((done) => { const look = () => FIND ? requestAnimationFrame(() => done(performance.now())) : setTimeout(look, 5); look() })`
	wait := func(what string) float64 { return script(strings.Replace(seen, "FIND", what, 1)) }
	open(base + web.Base + "jobs?user=*#login=" + token.Secret)
	wait("document.querySelector('td.name')?.textContent")
	sums := map[string]float64{}
	for range b.N {
		for page, line := range map[string]string{"jobs": "td.name", "cluster": ".node"} {
			open(base + web.Base + page + "?user=*")
			sums[page+"-usable-ms"] += wait("document.querySelector('" + line + "')?.textContent")
			sums[page+"-paint-ms"] += script("performance.getEntriesByName('first-contentful-paint')[0].startTime")
			sums[page+"-jump-ms"] += script("(() => { const v = document.querySelector('.virtual'); v.scrollTop = v.scrollHeight / 2; window.before = performance.now(); return 0 })()")
			sums[page+"-jump-ms"] += wait("document.querySelector('.virtual').scrollTop > 10000 && [...document.querySelectorAll('"+line+"')].length > 10") - script("window.before")
		}
		open(base + web.Base + "jobs?user=*")
		wait("document.querySelector('td.name')?.textContent")
		first := fmt.Sprint(int(script("Number(document.querySelector('td a').textContent)")))
		script(`new Promise((done) => {
			window.heard = 0
			const events = new EventSource('/v1/events?user=')
			events.addEventListener('job', () => window.heard ||= performance.now())
			events.onopen = () => done(0)
		})`)
		if _, err := s.Action(b.Context(), "hold", &api.ActionRequest{IDs: []string{first}}); err != nil {
			b.Fatal(err)
		}
		at := wait("document.querySelector('.virtual').innerText.includes('ONHOLD') && window.heard")
		sums["change-ms"] += at - script("window.heard")
		if _, err := s.Action(b.Context(), "release", &api.ActionRequest{IDs: []string{first}}); err != nil {
			b.Fatal(err)
		}
	}
	for name, sum := range sums {
		b.ReportMetric(sum/float64(b.N), name)
	}
}

// BenchmarkOpenPages is what 500 open pages of 20 users cost, with their side of the
// connections: each listens, and reads its list every 30 seconds; half of them show
// everyone's jobs. Ten jobs a second change; what they cost without pages is told, too.
func BenchmarkOpenPages(b *testing.B) {
	const pages, every = 500, 30 * time.Second
	s := pageSite(b)
	socket := strings.TrimPrefix(s.Client.Address, "unix://")
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: pages, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	get := func(path string) {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://gbatch"+path, nil)
		if err != nil {
			return
		}
		answer, err := hc.Do(r)
		if err != nil {
			return // it is over
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			b.Errorf("%s: %s", path, answer.Status)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	cost := func(span time.Duration) float64 {
		began, before := time.Now(), processorTime()
		for i := 0; time.Since(began) < span; i++ {
			<-tick.C
			what := "hold"
			if i%2 == 1 {
				what = "release"
			}
			if _, err := s.Action(b.Context(), what, &api.ActionRequest{IDs: []string{"7"}}); err != nil {
				b.Fatal(err)
			}
		}
		return 100 * float64(processorTime()-before) / float64(time.Since(began))
	}
	cost(every / 3) // what the filling left to do
	alone := cost(every)
	for i := range pages {
		user := ""
		if i%2 == 0 {
			user = fmt.Sprintf("user%d", i%20)
		}
		all.Go(func() { get("/v1/events?user=" + user) })
		all.Go(func() {
			for wait := every * time.Duration(i) / pages; ; wait = every {
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait):
					get("/v1/jobs?fold=true&newest=true&limit=100&maxAge=5&user=" + user)
				}
			}
		})
	}
	for b.Loop() {
		b.ReportMetric(cost(every), "%-of-a-core")
		b.ReportMetric(alone, "%-without-pages")
	}
	cancel()
	all.Wait()
}
