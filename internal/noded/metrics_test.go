package noded

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/metricstest"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

func withMetrics(c *config.Config) {
	c.GPU.Simulate = "h100:2"
	c.Metrics = config.Metrics{Listen: "127.0.0.1:0", Aliases: []string{config.DCGMAliases}}
}

// scrape reads the node's metrics as Prometheus does.
func (s *site) scrape(token string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", "http://"+s.a.exporter.Addr().String()+"/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// native is a scrape without what others have named.
func native(scrape string) string {
	var out strings.Builder
	for line := range strings.Lines(scrape) {
		if !strings.Contains(line, "DCGM_") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// jobFiles is a directory's files with what is in them.
func jobFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

// TestMetrics: while a job runs its GPU and what it uses are told, with whose
// it is; when it has ended nothing names it any more.
func TestMetrics(t *testing.T) {
	files := filepath.Join(t.TempDir(), "jobs")
	if err := os.MkdirAll(files, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, stale := range []string{"0", "1.7", "README"} {
		if err := os.WriteFile(filepath.Join(files, stale), []byte("99\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, func(c *config.Config) { withMetrics(c); c.Metrics.JobMap = files }).start()
	if diff := cmp.Diff(map[string]string{"README": "99\n"}, jobFiles(t, files)); diff != "" {
		t.Errorf("stale files (-want +got):\n%s", diff)
	}
	uuid := s.offered().GPUs[1].UUID
	id := rankID(7)
	s.want(id, order("echo hello; sleep 1000", func(o *api.RunOrder) {
		o.User, o.Project = "al\"i\nce\xff", "proj"
		o.Allocation.GPUs = []api.GPUShare{{UUID: uuid, Milli: 1000}}
	}))
	s.await("running rank", func() bool { return s.status[id].Phase == node.PhaseRunning })
	code, text := s.scrape("")
	if code != 200 {
		t.Fatalf("scrape: %d %s", code, text)
	}
	metricstest.Lint(t, native(text))
	gpu := fmt.Sprintf(`{gpu="1",model="NVIDIA H100 80GB HBM3",simulated="true",uuid=%q}`, uuid)
	for _, line := range []string{
		fmt.Sprintf(`gbatch_gpu_job_info{job="7",project="proj",user="al\"i\nce`+"\uFFFD"+`",uuid=%q} 1`, uuid),
		"gnoded_gpu_healthy" + gpu + " 1", "gnoded_gpu_power_watts" + gpu + " 70", "gnoded_gpu_memory_bytes" + gpu + " 8.5899345920e+10",
		"gnoded_gpu_xid_errors_total" + gpu + " 0", "gnoded_gpu_ecc_uncorrected_total" + gpu + " 0",
		`gnoded_job_memory_limit_bytes{job="7",rank="0"} 2.68435456e+08`, `gnoded_job_oom_kills_total{job="7",rank="0"} 0`,
		`gnoded_containers{phase="running"} 1`, `gnoded_healthy 1`, `gnoded_images 1`, `gnoded_launch_duration_seconds_count 1`,
		`gnoded_image_pull_duration_seconds_count{result="ok"} 1`,
	} {
		if !strings.Contains(text, line+"\n") && !strings.Contains(text, strings.Replace(line, "8.5899345920e+10", "8.589934592e+10", 1)+"\n") {
			t.Errorf("scrape has no line %s", line)
		}
	}
	if !strings.Contains(text, `gnoded_job_cpu_seconds_total{job="7",rank="0"} `) || !strings.Contains(text, `hpc_job="7"`) || !strings.Contains(text, "DCGM_FI_DEV_GPU_UTIL{") {
		t.Errorf("scrape lacks the job's processor time, or its GPU by NVIDIA's names:\n%s", text)
	}
	if diff := cmp.Diff(map[string]string{"README": "99\n", "1": "7\n"}, jobFiles(t, files)); diff != "" {
		t.Errorf("files while it runs (-want +got):\n%s", diff)
	}
	s.drop(id)
	s.empty()
	if _, text = s.scrape(""); strings.Contains(text, `job="7"`) {
		t.Error("the job has metrics after its end")
	}
	if diff := cmp.Diff(map[string]string{"README": "99\n"}, jobFiles(t, files)); diff != "" {
		t.Errorf("files after its end (-want +got):\n%s", diff)
	}
	if !strings.Contains(text, "gnoded_containers_ended_total{") {
		t.Error("its end is not counted")
	}
}

// TestMetricsToken: who does not show the token reads nothing.
func TestMetricsToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(c *config.Config) { withMetrics(c); c.Metrics.TokenFile = file }).start()
	for token, want := range map[string]int{"": 401, "0123456789abcde": 401, "0123456789abcdef": 200} {
		if code, _ := s.scrape(token); code != want {
			t.Errorf("token %q: %d, want %d", token, code, want)
		}
	}
}

// TestMetricsReaderThatNeverReads holds up neither others nor the daemon's end.
func TestMetricsReaderThatNeverReads(t *testing.T) {
	s := newSite(t, withMetrics).start()
	for range 12 {
		c, err := net.Dial("tcp", s.a.exporter.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 40 {
			if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.offered()
	s.halt()
}
