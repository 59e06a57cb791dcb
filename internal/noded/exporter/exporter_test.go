package exporter

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"gbatch/internal/metricstest"
	"gbatch/internal/noded/config"
)

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

// TestJobMapAtTheEnd: a daemon that stops leaves no file behind, or the
// exporter would go on naming a job that has ended since.
func TestJobMapAtTheEnd(t *testing.T) {
	files := filepath.Join(t.TempDir(), "jobs")
	m := newJobMap(files)
	if err := m.put(func() map[string]string { return map[string]string{"0": "1\n2\n", "3.1": "4\n"} }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"0": "1\n2\n", "3.1": "4\n"}, jobFiles(t, files)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := m.clear(); err != nil {
		t.Fatal(err)
	}
	if got := jobFiles(t, files); len(got) > 0 {
		t.Errorf("left behind: %v", maps.Collect(maps.All(got)))
	}
}

// TestMetricsList: the documentation lists what there is.
func TestMetricsList(t *testing.T) {
	e := New(Node{Config: &config.Config{}}, NewCounters())
	reg := prometheus.NewRegistry()
	reg.MustRegister(e.counters.reg)
	for _, prefix := range []string{"gnoded_", "gbatch_", "DCGM_"} {
		metricstest.List(t, "../../../docs/metrics.md", prefix, reg)
	}
}
