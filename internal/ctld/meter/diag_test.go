package meter

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestQuantile(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2, 4}})
	if got := timingOf(read(h).Histogram); got.Count != 0 || got.P99MS != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	for _, v := range []float64{0.5, 1.5, 1.5, 3, 100} {
		h.Observe(v)
	}
	for q, want := range map[float64]float64{0.2: 1, 0.4: 1.5, 0.6: 2, 0.8: 4, 0.99: 4} {
		if got := quantile(read(h).Histogram, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
