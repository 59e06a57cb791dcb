package exporter

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gbatch/internal/job"
	"gbatch/oci/image"
)

// Counters are what the daemon counts as it happens. What is so at one moment
// is read when it is asked for: see collect.go.
type Counters struct {
	reg *prometheus.Registry

	launches prometheus.Histogram
	steps    *prometheus.HistogramVec
	pulls    *prometheus.HistogramVec
	came     *prometheus.CounterVec
	sent     prometheus.Counter
	ends     *prometheus.CounterVec
	logs     prometheus.Counter
	oom      prometheus.Counter
	damaged  prometheus.Counter
	programs *prometheus.HistogramVec
}

// NewCounters makes them, at 0.
func NewCounters() *Counters {
	m := &Counters{
		reg: prometheus.NewRegistry(),
		launches: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gnoded_launch_duration_seconds",
			Help: "Time from a container's order to its program's first instruction, in seconds.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 18)}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gnoded_launch_step_duration_seconds",
			Help: "Time of one step of a container's start, in seconds.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)}, []string{"step"}),
		pulls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gnoded_image_pull_duration_seconds",
			Help: "Time until an image was there, in seconds, by result: ok, or the kind of the failure. Short where it was there already.", Buckets: prometheus.ExponentialBuckets(0.005, 4, 10)}, []string{"result"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gnoded_containers_ended_total",
			Help: "Containers that ended, by reason; empty: well."}, []string{"reason"}),
		logs: prometheus.NewCounter(prometheus.CounterOpts{Name: "gnoded_log_bytes_total", Help: "Output of containers that ended, in bytes, whether kept or not."}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{Name: "gnoded_scrub_damaged_total",
			Help: "Image layers and cached inputs that the disk had damaged. The log names them."}),
		oom: prometheus.NewCounter(prometheus.CounterOpts{Name: "gnoded_oom_kills_total", Help: "Processes that the memory limits of containers killed, of those that ended."}),
	}
	m.programs = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gnoded_site_program_duration_seconds",
		Help: "Time of a run of a program of the site's, in seconds, by kind (prolog, epilog, health) and result (ok, failed).", Buckets: prometheus.ExponentialBuckets(0.005, 4, 10)}, []string{"kind", "result"})
	m.came = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gnoded_image_received_bytes_total",
		Help: "Compressed bytes of image layers that came, by where from: registry or peer, another node."}, []string{"from"})
	m.sent = prometheus.NewCounter(prometheus.CounterOpts{Name: "gnoded_image_sent_bytes_total", Help: "Compressed bytes of image layers that other nodes were sent."})
	m.reg.MustRegister(m.came, m.sent, m.programs, m.launches, m.steps, m.pulls, m.ends, m.logs, m.oom, m.damaged,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Launched counts a container by the time from its order to its first instruction.
func (m *Counters) Launched(took time.Duration) { m.launches.Observe(took.Seconds()) }

// Step counts one step of a container's start.
func (m *Counters) Step(name string, took time.Duration) {
	m.steps.WithLabelValues(name).Observe(took.Seconds())
}

// Output counts what a container that ended wrote, and what its memory limit killed.
func (m *Counters) Output(bytes, oomKills float64) {
	m.logs.Add(bytes)
	m.oom.Add(oomKills)
}

// Damaged counts what was found damaged.
func (m *Counters) Damaged(n int) { m.damaged.Add(float64(n)) }

// Ended counts a container's end.
func (m *Counters) Ended(r job.Reason) { m.ends.WithLabelValues(string(r)).Inc() }

// Ran counts a run of a program of the site's.
func (m *Counters) Ran(kind, result string, took time.Duration) {
	m.programs.WithLabelValues(kind, result).Observe(took.Seconds())
}

// Came counts what a layer cost.
func (m *Counters) Came(bytes int64, peer bool) {
	from := "registry"
	if peer {
		from = "peer"
	}
	m.came.WithLabelValues(from).Add(float64(bytes))
}

// Sent counts what other nodes were sent.
func (m *Counters) Sent(bytes int64) { m.sent.Add(float64(bytes)) }

// Pulled counts a pull, by what came of it.
func (m *Counters) Pulled(took time.Duration, err error) {
	result := "ok"
	if pull, is := errors.AsType[*image.PullError](err); is {
		result = string(pull.Kind)
	} else if err != nil {
		result = "stopped"
	}
	m.pulls.WithLabelValues(result).Observe(took.Seconds())
}
