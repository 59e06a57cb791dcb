package ctld

import (
	"gbatch/internal/ctld/meter"
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestDiag: what an operator is told of a controller that has done something.
func TestDiag(t *testing.T) {
	s := newSite(t, nil)
	for range 3 {
		if _, err := s.Submit(t.Context(), hello(1), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Explain(t.Context(), "77"); err == nil {
		t.Fatal("job 77 was explained")
	}
	d, err := s.Diag(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Turns.Count < 3 || d.Commits.Count < 3 || d.Rounds.Count < 1 || d.Records < 3 || d.Waiting != 3 || d.InboxSize != inboxSize || d.DiskFree == 0 || d.HeapBytes == 0 {
		t.Errorf("got %+v", d)
	}
	if d.Turns.P50MS <= 0 || d.Turns.P99MS < d.Turns.P50MS {
		t.Errorf("turns: %+v", d.Turns)
	}
	if r := d.Routes[0]; r.Route != "POST /v1/jobs" || r.Count != 3 || r.Failed+r.Refused != 0 {
		t.Errorf("the most used route is %+v", r)
	}
	if r := d.Routes[1]; r.Route != "GET /v1/jobs/{id}/explain" || r.Count != 1 || r.Refused != 1 {
		t.Errorf("the next one is %+v", r)
	}
}

func TestQuantile(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2, 4}})
	if got := meter.TimingOf(meter.Read(h).Histogram); got.Count != 0 || got.P99MS != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	for _, v := range []float64{0.5, 1.5, 1.5, 3, 100} {
		h.Observe(v)
	}
	for q, want := range map[float64]float64{0.2: 1, 0.4: 1.5, 0.6: 2, 0.8: 4, 0.99: 4} {
		if got := meter.Quantile(meter.Read(h).Histogram, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
