package ctld

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
	"gbatch/internal/web"
)

// benchSite is a controller over TCP for one benchmark.
func benchSite(b *testing.B) *testSite {
	b.Helper()
	s := &testSite{cfg: site.Default()}
	s.cfg.Dir, s.cfg.Socket, s.cfg.Listen, s.cfg.ReserveMiB = b.TempDir(), "", "127.0.0.1:0", 0
	s.cfg.Operators = byName("root")
	s.cfg.Limits.DefaultDuration = 3600
	s.cfg.Nodes.Suspect, s.cfg.Nodes.Timeout = 3600, 7200 // they are silent, and what that does is no page's
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
	return s
}

// pageSite has 100,000 queued jobs and 5,000 nodes; with -short fewer.
func pageSite(b *testing.B) *testSite {
	b.Helper()
	s := benchSite(b)
	queued, nodes := 100_000, 5000
	if testing.Short() {
		queued, nodes = 2000, 1000
	}
	fill(b, s.server, queued)
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
	wait := func(what string) float64 {
		began := time.Now()
		at := script(strings.Replace(seen, "FIND", what, 1))
		if took := time.Since(began); took > 5*time.Second {
			said, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("JSON.stringify(performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map((e) => [e.name, e.nextHopProtocol, e.startTime, e.requestStart, e.responseEnd])) + document.hidden"))
			b.Logf("%v until %s: %s", took, what, said)
		}
		return at
	}
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

// BenchmarkOpenPages is what 500 open pages of 20 users cost the controller: each, in a
// browser of its own, listens and reads its list as the page does; half of them show
// everyone's jobs. Ten jobs a second change, of which one ends. What that costs
// without pages is told, too. The readers are another process.
func BenchmarkOpenPages(b *testing.B) {
	const span = 30 * time.Second
	s := pageSite(b)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	act := func(what, id string) {
		if _, err := s.Action(b.Context(), what, &api.ActionRequest{IDs: []string{id}}); err != nil {
			b.Fatal(err)
		}
	}
	next := 50
	cost := func() float64 {
		began, before := time.Now(), processorTime()
		for i := 0; time.Since(began) < span; i++ {
			<-tick.C
			if i%10 == 9 {
				act("cancel", fmt.Sprint(next))
				next++
				continue
			}
			act([]string{"release", "hold"}[i%2], fmt.Sprint(7+i/2%4))
		}
		return 100 * float64(processorTime()-before) / float64(time.Since(began))
	}
	end := s.startReaders(b, pageReaders{Pages: 500})
	defer end()
	cost() // what filling left to do, and their coming
	for b.Loop() {
		before := s.answered("GET /v1/jobs")
		b.ReportMetric(cost(), "%-of-a-core")
		b.ReportMetric(float64(s.answered("GET /v1/jobs")-before)/span.Seconds(), "lists/s")
	}
	end()
	cost() // what their going cost
	b.ReportMetric(cost(), "%-without-pages")
}

// answered is how many requests of a route were answered.
func (s *testSite) answered(route string) uint64 {
	d, err := s.Diag(context.Background())
	if err != nil {
		return 0
	}
	for _, r := range d.Routes {
		if r.Route == route {
			return r.Count
		}
	}
	return 0
}
