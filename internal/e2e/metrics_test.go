package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/hosttest"
)

// prometheus is a real Prometheus on loopback.
type prometheus struct {
	t       *testing.T
	address string
}

// startPrometheus runs it with a configuration until the test ends.
func startPrometheus(t *testing.T, config string) *prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("SKIPPED: prometheus is missing: install the package prometheus")
	}
	p := &prometheus{t: t}
	if p.address, err = hosttest.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config.file="+config, "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+p.address)
	cmd.Stdout, cmd.Stderr = log, log
	if err := startChild(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", tail(log.Name(), 30))
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		log.Close()
	})
	return p
}

// ask evaluates a query; each result is its value and its labels.
func (p *prometheus) ask(query string) (out []sample) {
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://" + p.address + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if json.NewDecoder(resp.Body).Decode(&answer) != nil {
		return nil
	}
	for _, r := range answer.Data.Result {
		out = append(out, sample{fmt.Sprint(r.Value[1]), r.Metric})
	}
	return out
}

type sample struct {
	value  string
	labels map[string]string
}

// becomes waits until a query has one result with a value, and gives its labels.
func (p *prometheus) becomes(query, value string) map[string]string {
	p.t.Helper()
	var last []sample
	if !poll(patience, func() bool {
		last = p.ask(query)
		return len(last) == 1 && last[0].value == value
	}) {
		p.t.Fatalf("%s: %v, want one result of %s", query, last, value)
	}
	return last[0].labels
}

// shipped is a file of deploy with other values for some of its own.
func shipped(t *testing.T, name string, values map[string]string) string {
	t.Helper()
	b, err := os.ReadFile("../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for old, value := range values {
		if !strings.Contains(text, old) {
			t.Fatalf("deploy/%s has no %q", name, old)
		}
		text = strings.ReplaceAll(text, old, value)
	}
	return text
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPrometheus: a real Prometheus with the configuration that we ship reads
// the controller, by TLS and a token of a user that may do nothing else, and a
// node, by its token, and sees a job come, use its GPU and go. The rules are
// taken in, and none of them is in alarm.
func TestPrometheus(t *testing.T) {
	t.Parallel() // it mostly waits
	needs(t)
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("SKIPPED: prometheus is missing: install the package prometheus")
	}
	node, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	head, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir+"/nodes.token", "a-token-for-the-nodes\n")
	s := newSite(t, siteOptions{
		listen:     head,
		ctldConfig: "metrics: {scrapers: [prometheus], aliases: [slurm]}\n",
		nodeConfig: fmt.Sprintf("gpu: {simulate: \"h100:2\"}\nmetrics: {listen: %q, tokenFile: %s/nodes.token, aliases: [dcgm], jobMap: DIR/gpu-jobs}\n", node, dir),
	})
	write(t, dir+"/ctld.token", s.must("gadm", "token", "create", "-u", "prometheus", "--for", "1h"))
	write(t, dir+"/rules.yml", shipped(t, "prometheus/rules.yml", nil))
	write(t, dir+"/prometheus.yml", shipped(t, "prometheus/prometheus.yml", map[string]string{
		"scrape_interval: 15s": "scrape_interval: 1s", "evaluation_interval: 15s": "evaluation_interval: 1s",
		"/etc/prometheus/gbatch.token": dir + "/ctld.token", "/etc/prometheus/gbatch-ca.crt": s.dir + "/ctld/ca.crt",
		"/etc/prometheus/gbatch-nodes.token": dir + "/nodes.token",
		"head.example.org:7077":              head, "gpu01.example.org:9401, gpu02.example.org:9401": node,
	}))
	p := startPrometheus(t, dir+"/prometheus.yml")
	p.becomes(`up{job="gctld"}`, "1")
	p.becomes(`up{job="gnoded"}`, "1")
	p.becomes(`gctld_nodes{state="up"}`, "1")
	p.becomes(`sum(gctld_gpus{state="idle"})`, "2")

	id := s.submit(doc{name: "train", gpus: 1, command: idle})
	waits := s.submit(doc{name: "later", gpus: 2, command: []string{"true"}})
	s.waitRunning(id)
	gpu := s.job(id).Attempts[0].Ranks[0].GPUs[0]
	p.becomes(`gctld_jobs{state="RUNNING"}`, "1")
	p.becomes(`sum(gctld_queued_jobs)`, "1")
	p.becomes(`sum(gctld_gpus{state="allocated"})`, "1")
	p.becomes(`gctld_user_gpus{user="root"}`, "1")
	p.becomes(`slurm_jobs_running`, "1")
	labels := p.becomes(`gnoded_gpu_power_watts * on (instance, uuid) group_right () gbatch_gpu_job_info`, "70")
	if labels["exported_job"] != id || labels["user"] != "root" || labels["uuid"] != gpu.UUID || labels["project"] != "default" {
		t.Errorf("the job's GPU has the labels %v, want job %s and GPU %s", labels, id, gpu.UUID)
	}
	p.becomes(fmt.Sprintf(`gnoded_gpu_power_watts{simulated="true",uuid=%q}`, gpu.UUID), "70")
	p.becomes(fmt.Sprintf(`DCGM_FI_DEV_GPU_UTIL{hpc_job=%q}`, id), "0")
	p.becomes(fmt.Sprintf(`gnoded_job_cpu_seconds_total{exported_job=%q} >= bool 0`, id), "1")
	if files, err := os.ReadDir(s.dir + "/gpu-jobs"); err != nil || len(files) != 1 {
		t.Errorf("files for NVIDIA's exporter: %v %v", files, err)
	}

	s.must("gcancel", id)
	s.wait(waits)
	p.becomes(`sum(gctld_gpus{state="idle"})`, "2")
	p.becomes(`sum(gctld_job_wait_seconds_count)`, "2")
	p.becomes(`gctld_jobs_ended_total{state="FINISHED"}`, "1")
	p.becomes(`absent(gbatch_gpu_job_info)`, "1")
	if files, err := os.ReadDir(s.dir + "/gpu-jobs"); err != nil || len(files) != 0 {
		t.Errorf("files for NVIDIA's exporter after the jobs' end: %v %v", files, err)
	}
	if got := p.ask(`ALERTS{alertstate="firing"}`); len(got) > 0 {
		t.Errorf("alerts: %v", got)
	}
	for name, use := range map[string]string{"the controller without a token": "https://" + head + "/metrics", "a node without a token": "http://" + node + "/metrics"} {
		if code := anonymous(t, use); code != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", name, code)
		}
	}
}

// anonymous is the status that one gets who says nothing of who it is.
func anonymous(t *testing.T, address string) int {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // whom it asks does not matter
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Get(address)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
