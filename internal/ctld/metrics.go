package ctld

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gbatch/internal/job"
	"gbatch/sched"
)

// metrics are the controller's own measurements. Those of the queue are read
// from the view at scrape time: see queueCollector.
type metrics struct {
	reg      *prometheus.Registry
	commits  prometheus.Histogram
	records  prometheus.Counter
	rounds   prometheus.Histogram
	starts   prometheus.Counter
	backfill prometheus.Counter
	missed   prometheus.Histogram
	prepulls *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		reg: prometheus.NewRegistry(),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gctld_turn_duration_seconds",
			Help: "Time from taking a batch of events to its records being durable, in seconds.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16)}),
		records: prometheus.NewCounter(prometheus.CounterOpts{Name: "gctld_records_total", Help: "Records made durable."}),
		rounds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gctld_scheduling_round_duration_seconds",
			Help: "Time of one scheduling round, in seconds.", Buckets: prometheus.ExponentialBuckets(0.00005, 2, 18)}),
		starts:   prometheus.NewCounter(prometheus.CounterOpts{Name: "gctld_jobs_started_total", Help: "Attempts that were given resources."}),
		backfill: prometheus.NewCounter(prometheus.CounterOpts{Name: "gctld_jobs_backfilled_total", Help: "Attempts that started past a job with a reservation."}),
		missed: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gctld_start_estimate_error_seconds",
			Help: "Difference between a job's start and the first start that the plan promised it, in seconds, of jobs that had to wait.", Buckets: prometheus.ExponentialBuckets(1, 4, 10)}),
	}
	m.prepulls = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gctld_images_prepulled_total",
		Help: "Images that nodes pulled ahead of the start of a waiting job, by outcome."}, []string{"outcome"})
	m.reg.MustRegister(m.prepulls, m.commits, m.records, m.rounds, m.starts, m.backfill, m.missed)
	return m
}

func (m *metrics) commit(took time.Duration, records int) {
	m.commits.Observe(took.Seconds())
	m.records.Add(float64(records))
}

func (m *metrics) round(took time.Duration, p *sched.Plan, missed []sched.Time) {
	for _, d := range missed {
		m.missed.Observe(float64(max(d, -d)) / 1000)
	}
	m.rounds.Observe(took.Seconds())
	m.starts.Add(float64(len(p.Starts)))
	for _, s := range p.Starts {
		if s.Backfilled {
			m.backfill.Inc()
		}
	}
}

func (m *metrics) prepulled(list []job.Prepulled) {
	for _, p := range list {
		outcome := "there"
		if p.Error != "" {
			outcome = "failed"
		}
		m.prepulls.WithLabelValues(outcome).Inc()
	}
}

// queueCollector reads the published view, so that a scrape never touches the
// loop.
type queueCollector struct {
	server            *Server
	jobs, nodes, gpus *prometheus.Desc
}

func (s *Server) metricsHandler() http.Handler {
	c := &queueCollector{
		server: s,
		jobs:   prometheus.NewDesc("gctld_jobs", "Jobs in the controller's memory by state; ended ones leave it after a time.", []string{"state"}, nil),
		nodes:  prometheus.NewDesc("gctld_nodes", "Nodes by state.", []string{"state"}, nil),
		gpus:   prometheus.NewDesc("gctld_gpus", "GPUs by model and use.", []string{"model", "use"}, nil),
	}
	s.loop.metrics.reg.MustRegister(c)
	return promhttp.HandlerFor(s.loop.metrics.reg, promhttp.HandlerOpts{})
}

func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.jobs
	ch <- c.nodes
	ch <- c.gpus
}

func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	v := c.server.loop.view.Load()
	counts := countJobs(v)
	for _, state := range job.States {
		ch <- prometheus.MustNewConstMetric(c.jobs, prometheus.GaugeValue, float64(counts[state]), string(state))
	}
	nodes := map[string]int{}
	type use struct{ model, use string }
	gpus := map[use]float64{}
	for _, n := range v.Nodes {
		state, _ := n.State()
		nodes[state]++
		for _, g := range nodeToAPI(v, n).GPUs {
			gpus[use{g.Model, "total"}]++
			gpus[use{g.Model, "allocated"}] += 1 - float64(g.FreeMilli)/1000
		}
	}
	for state, n := range nodes {
		ch <- prometheus.MustNewConstMetric(c.nodes, prometheus.GaugeValue, float64(n), state)
	}
	for u, n := range gpus {
		ch <- prometheus.MustNewConstMetric(c.gpus, prometheus.GaugeValue, n, u.model, u.use)
	}
}
