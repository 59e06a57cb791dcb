package ctld

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/counts"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/metrics"
	"gbatch/internal/metricstest"
	"gbatch/internal/node"
)

// scrape is what a scraper gets, past the door.
func (s *testSite) scrape() string {
	s.t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(s.server.meters.Reg).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		s.t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// series are the lines of some metrics in a scrape.
func series(scrape string, names ...string) []string {
	line := regexp.MustCompile(`^(` + strings.Join(names, "|") + `)[{ ]`)
	var out []string
	for l := range strings.Lines(scrape) {
		if line.MatchString(l) {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out
}

func (s *testSite) submitAs(user string, req *api.SubmitRequest) {
	s.t.Helper()
	if _, err := s.user(user).Submit(s.t.Context(), req, ""); err != nil {
		s.t.Fatal(err)
	}
}

// gpuNode is a node with H100s.
func (s *testSite) gpuNode(name string, uuids ...string) *fakeNode {
	s.t.Helper()
	n := &fakeNode{name: name, held: map[job.RankID]node.RankStatus{}, runs: map[job.RankID]*api.RunOrder{}, stops: map[job.RankID]*api.Stop{}, s: s}
	inv := &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, CPUs: 8, MemBytes: 32 << 30}
	for i, u := range uuids {
		inv.GPUs = append(inv.GPUs, node.GPU{UUID: u, Index: i, Model: "H100", MemBytes: 80 << 30, NUMA: -1})
	}
	n.sync(inv)
	return n
}

const gpuJob = `{"name":"train","request":{"resources":{"gpus":1,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"}}}`

// TestMetrics: what a scrape tells is what the queue, the nodes and the ledger
// are, in a form that Prometheus finds no fault with.
func TestMetrics(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.Projects = []site.Project{{Name: "default"}, {Name: "lab", Shares: 3, Budget: 600}}
		c.Metrics.Aliases = []string{site.SlurmNames}
		c.Policy.QOS = map[string]site.QOS{"high": {Priority: 500}}
	})
	n := s.gpuNode("n1", "GPU-1", "GPU-2")
	s.submitAs("ann", &api.SubmitRequest{Project: "lab", Job: []byte(gpuJob)})
	s.submitAs("ann", &api.SubmitRequest{Project: "lab", Job: []byte(gpuJob)})
	s.submitAs("bob", &api.SubmitRequest{Job: []byte(strings.Replace(gpuJob, `{"name"`, `{"gbatch":{"qos":"high"},"name"`, 1))})
	waitFor(t, "two jobs have GPUs and one waits", func() bool {
		n.sync(nil)
		return len(n.held) == 2 && strings.Contains(s.scrape(), `gctld_queued_jobs{cluster="0",qos="high",reason="Resources"} 1`)
	})
	for id := range n.held {
		if id.Job == 1 {
			n.report(id, node.PhaseRunning, nil)
		}
	}
	waitFor(t, "accounts are there and a job runs", func() bool {
		text := s.scrape()
		return strings.Contains(text, "gctld_project_shares_ratio") && strings.Contains(text, `gctld_jobs{state="RUNNING"} 1`)
	})
	text := s.scrape()
	metricstest.Lint(t, text)
	want := []string{
		`gctld_gpus{model="H100",state="allocated"} 2`,
		`gctld_gpus{model="H100",state="idle"} 0`,
		`gctld_gpus{model="H100",state="out_of_service"} 0`,
		`gctld_jobs_started_total 2`,
		`gctld_jobs_submitted_total{outcome="accepted"} 3`,
		`gctld_nodes{state="drained"} 0`,
		`gctld_nodes{state="lost"} 0`,
		`gctld_nodes{state="rebooting"} 0`,
		`gctld_nodes{state="suspect"} 0`,
		`gctld_nodes{state="unhealthy"} 0`,
		`gctld_nodes{state="up"} 1`,
		`gctld_project_budget_gpu_seconds{project="lab"} 36000`,
		`gctld_project_gpus{project="default"} 0`,
		`gctld_project_gpus{project="lab"} 2`,
		`gctld_project_shares_ratio{project="default"} 0.25`,
		`gctld_project_shares_ratio{project="lab"} 0.75`,
		`gctld_user_gpus{user="ann"} 2`,
		`gctld_user_gpus{user="bob"} 0`,
	}
	got := series(text, "gctld_gpus", "gctld_jobs_started_total", "gctld_jobs_submitted_total", "gctld_nodes", "gctld_project_budget_gpu_seconds",
		"gctld_project_gpus", "gctld_project_shares_ratio", "gctld_user_gpus")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scrape (-want +got):\n%s", diff)
	}
	want = []string{
		`slurm_account_jobs_gpus_alloc{account="lab"} 2`,
		`slurm_jobs_pending 1`,
		`slurm_partition_jobs_gpus_alloc{partition="1"} 2`,
		`slurm_sdiag_jobs_submitted 3`,
		`slurm_sdiag_jobs_started 2`,
		`gctld_cluster_gpus{cluster="1"} 2`,
		`slurm_jobs_configuring 1`,
		`slurm_node_gpus_alloc{node="n1"} 2`,
		`slurm_nodes_alloc 1`,
		`slurm_partition_gpus{partition="1"} 2`,
		`slurm_user_jobs_running{username="ann"} 1`,
		`gctld_project_jobs{project="default",state="queued"} 1`,
		`gctld_project_jobs{project="lab",state="running"} 1`,
		`gctld_project_jobs{project="lab",state="starting"} 1`,
		`gctld_job_wait_seconds_count{cluster="1",qos=""} 2`,
		`gctld_http_requests_total{code="200",route="POST /v1/jobs"} 3`,
		`gctld_http_request_duration_seconds_count{route="POST /v1/jobs"} 3`,
	}
	for _, line := range want {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("scrape has no line %s", line)
		}
	}
}

// TestLicenseMetrics: what the site has of each licence, what jobs hold and what is waited for.
func TestLicenseMetrics(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Licenses = map[string]int64{"ansys": 3, "matlab": 1} })
	n := s.gpuNode("n1", "GPU-1", "GPU-2")
	for range 2 {
		s.submitAs("ann", &api.SubmitRequest{Job: []byte(strings.Replace(gpuJob, `{"name"`, `{"gbatch":{"licenses":{"ansys":2}},"name"`, 1))})
	}
	want := []string{`gctld_licenses{license="ansys"} 3`, `gctld_licenses{license="matlab"} 1`, `gctld_licenses_queued{license="ansys"} 2`,
		`gctld_licenses_queued{license="matlab"} 0`, `gctld_licenses_used{license="ansys"} 2`, `gctld_licenses_used{license="matlab"} 0`}
	waitFor(t, "one job has licences and one waits", func() bool {
		n.sync(nil)
		return cmp.Equal(want, series(s.scrape(), "gctld_licenses", "gctld_licenses_queued", "gctld_licenses_used"))
	})
}

// TestMetricsList: the documentation lists what there is.
func TestMetricsList(t *testing.T) {
	s := newSite(t, nil)
	metricstest.List(t, "../../docs/metrics.md", "gctld_", s.server.meters.Reg)
	metricstest.List(t, "../../docs/metrics.md", "slurm_", s.server.meters.Reg)
}

// TestMetricsOfEnds: every end is counted once, with its reason.
func TestMetricsOfEnds(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(hello(1), "")
	waitFor(t, "the job is on its node", func() bool { n.sync(nil); return len(n.held) == 1 })
	for id := range n.held {
		n.report(id, node.PhaseEnded, &node.Exit{Code: 7, Reason: job.ExitCode})
		n.report(id, node.PhaseEnded, &node.Exit{Code: 7, Reason: job.ExitCode})
	}
	want := []string{`gctld_jobs_ended_total{reason="` + string(job.ExitCode) + `",state="FAILED"} 1`}
	if diff := cmp.Diff(want, series(s.scrape(), "gctld_jobs_ended_total")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMetricsOfArrays: an array's tasks are counted, those that are jobs as
// jobs, and the array itself is not.
func TestMetricsOfArrays(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(array(`{"tasks":"0-9%2"}`), "")
	n.sync(nil)
	waitFor(t, "two tasks are jobs", func() bool { return strings.Contains(s.scrape(), `gctld_array_tasks{state="live"} 2`) })
	want := []string{`gctld_array_tasks{state="cancelled"} 0`, `gctld_array_tasks{state="failed"} 0`, `gctld_array_tasks{state="live"} 2`,
		`gctld_array_tasks{state="pending"} 8`, `gctld_array_tasks{state="succeeded"} 0`, `gctld_jobs{state="ASSIGNED"} 2`}
	got := series(s.scrape(), "gctld_array_tasks", `gctld_jobs.state="ASSIGNED".`, "gctld_queued_jobs")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestScrapers: metrics are for operators and those that the rules name, and a
// reload changes who that is.
func TestScrapers(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Metrics.Scrapers = byName("prometheus") })
	token := s.token(api.TokenRequest{Use: api.TokenUser, User: "prometheus"}).Secret
	scraper := column{name: "prometheus", token: token}
	if code, text := scraper.do(t, s, "GET", "/metrics", ""); code != 200 || !strings.Contains(text, "gctld_build_info") {
		t.Errorf("scraper: %d %.200s", code, text)
	}
	if code, _ := scraper.do(t, s, "GET", "/v1/audit", ""); code != 403 {
		t.Errorf("a scraper reads the audit log: %d", code)
	}
	s.cfg.Metrics.Scrapers = nil
	if err := s.server.rules.Reload(access.WithCaller(t.Context(), access.Identity{User: "root", Role: access.RoleAdmin, Root: true}, "")); err != nil {
		t.Fatal(err)
	}
	if code, text := scraper.do(t, s, "GET", "/metrics", ""); code != 403 || !strings.Contains(text, "metrics.scrapers") {
		t.Errorf("who is no scraper any more: %d %s", code, text)
	}
}

// TestScraperThatNeverReads holds up nobody: others are answered, and the loop
// goes on.
func TestScraperThatNeverReads(t *testing.T) {
	s := newSite(t, nil)
	path := strings.TrimPrefix(s.server.Addresses()[0], "unix://")
	for range 12 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 40 { // more answers than the socket's buffers hold
			if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.submit(hello(1), "")
	if r, err := s.Status(t.Context()); err != nil || r.Jobs[job.Queued] != 1 {
		t.Errorf("status: %v %v", r, err)
	}
}

// BenchmarkScrape is one scrape with 100,000 queued jobs of 20 users, 100
// projects' worth of series and 500 nodes, when the view is always another.
func BenchmarkScrape(b *testing.B) {
	server, c, _ := bench(b, b.TempDir())
	fill(b, server, 100_000)
	for i := range 500 {
		name := fmt.Sprintf("n%d", i)
		inv := &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, CPUs: 0, MemBytes: 1 << 20}
		for g := range 8 {
			inv.GPUs = append(inv.GPUs, node.GPU{UUID: fmt.Sprintf("GPU-%d-%d", i, g), Index: g, Model: "H100", MemBytes: 80 << 30, NUMA: -1})
		}
		if _, err := c.NodeSync(b.Context(), name, &api.SyncRequest{Instance: "i", Boot: "b", InventoryHash: "h", Inventory: inv}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("count", func(b *testing.B) {
		v, before := server.loop.View(), processorTime()
		for b.Loop() {
			counts.Of(v)
		}
		b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	})
	b.Run("scrape", func(b *testing.B) {
		before := processorTime()
		for b.Loop() {
			fresh := &counts.Exporter{Loop: server.loop, Aliases: func() []string { return nil }, Logs: server.kept, Expiry: server.pki.Expiry,
				Licenses: func() map[string]int64 { return nil }, Tokens: func(time.Duration, time.Duration) map[string]int { return nil }}
			reg := prometheus.NewRegistry()
			fresh.Register(reg)
			handler := metrics.Handler(reg)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			b.ReportMetric(float64(w.Body.Len()), "bytes")
		}
		b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	})
}

// processorTime is what this process has used: it hardly depends on what else
// the machine does.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
