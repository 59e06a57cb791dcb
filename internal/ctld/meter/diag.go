package meter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"gbatch/internal/api"
)

// Diagnose is what was counted, in a few numbers.
func (m *Meters) Diagnose() api.Diagnosis {
	out := api.Diagnosis{
		Turns: timingOf(read(m.turns).Histogram), Commits: timingOf(read(m.commits).Histogram), Rounds: timingOf(read(m.rounds).Histogram),
		Estimates: timingOf(read(m.missed).Histogram), Truncated: countOf(m.truncated), Records: countOf(m.records),
		Starts: countOf(m.starts), Backfilled: countOf(m.backfill), Preempted: countOf(m.halts), Routes: m.routeUse(),
	}
	if h := read(m.evaluated).Histogram; h.GetSampleCount() > 0 {
		out.Evaluated = h.GetSampleSum() / float64(h.GetSampleCount())
	}
	return out
}

func read(m prometheus.Metric) *dto.Metric {
	out := &dto.Metric{}
	_ = m.Write(out) // it fails on a metric that does not exist
	return out
}

func countOf(c prometheus.Counter) uint64 { return uint64(read(c).GetCounter().GetValue()) }

// each reads the children of a vector.
func each(v prometheus.Collector, see func(labels map[string]string, m *dto.Metric)) {
	ch := make(chan prometheus.Metric)
	go func() { // ends with the loop below
		v.Collect(ch)
		close(ch)
	}()
	for child := range ch {
		m := read(child)
		labels := map[string]string{}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		see(labels, m)
	}
}

// routeUse is the routes that were used, the most used first.
func (m *Meters) routeUse() []api.RouteUse {
	byRoute := map[string]*api.RouteUse{}
	each(m.latency, func(labels map[string]string, m *dto.Metric) {
		if t := timingOf(m.Histogram); t.Count > 0 {
			byRoute[labels["route"]] = &api.RouteUse{Route: labels["route"], Timing: t}
		}
	})
	each(m.requests, func(labels map[string]string, m *dto.Metric) {
		r, n := byRoute[labels["route"]], uint64(m.GetCounter().GetValue())
		switch {
		case r == nil:
		case strings.HasPrefix(labels["code"], "4"):
			r.Refused += n
		case strings.HasPrefix(labels["code"], "5"):
			r.Failed += n
		}
	})
	out := []api.RouteUse{}
	for _, r := range byRoute {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b api.RouteUse) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Route, b.Route))
	})
	return out
}

// TimingOf reads a histogram of seconds.
func timingOf(h *dto.Histogram) api.Timing {
	n := h.GetSampleCount()
	if n == 0 {
		return api.Timing{}
	}
	return api.Timing{Count: n, MeanMS: 1000 * h.GetSampleSum() / float64(n), P50MS: 1000 * quantile(h, 0.5), P99MS: 1000 * quantile(h, 0.99)}
}

// Quantile is where q of the samples lie below, as if those of a bucket were
// spread evenly in it; what is above all buckets counts as the last bound.
func quantile(h *dto.Histogram, q float64) float64 {
	want := q * float64(h.GetSampleCount())
	low, below := 0.0, uint64(0)
	for _, b := range h.Bucket {
		if float64(b.GetCumulativeCount()) >= want {
			if in := b.GetCumulativeCount() - below; in > 0 {
				return low + (b.GetUpperBound()-low)*(want-float64(below))/float64(in)
			}
			return low
		}
		low, below = b.GetUpperBound(), b.GetCumulativeCount()
	}
	return low
}
