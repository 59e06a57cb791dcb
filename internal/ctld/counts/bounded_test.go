package counts

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"gbatch/internal/ctld/meter"
	"gbatch/internal/metrics"
)

// TestMetricsAreBounded: however many users and projects there are, a scrape
// has so many series at most, and nobody's jobs are lost from the sums.
func TestMetricsAreBounded(t *testing.T) {
	c := &Counts{users: holders{}, queued: map[queue]int{}}
	for i := range 5000 {
		h := at(c.users, strings.Repeat("x", i%300)+string(rune('A'+i/300)))
		h.jobs[isQueued]++
	}
	col := &metrics.Collector{Families: []metrics.Family{mUserJobs, mUserGPUs}, Read: func(set *metrics.Set) {
		c.users.read(set, meter.MaxUsers, mUserJobs, mUserGPUs)
	}}
	n, sum := collect(t, col, "gctld_user_jobs")
	if n > (meter.MaxUsers+1)*int(activities) || sum != 5000 {
		t.Errorf("%d series with %v jobs: want at most %d, with 5000", n, sum, (meter.MaxUsers+1)*int(activities))
	}
}

// collect counts the series of a metric and adds them up.
func collect(t *testing.T, c prometheus.Collector, name string) (n int, sum float64) {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			n, sum = n+1, sum+m.GetGauge().GetValue()
		}
	}
	return n, sum
}
