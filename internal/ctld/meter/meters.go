package meter

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/metrics"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Meters are what the controller counts as it happens. What is so at one
// moment is read from the view at scrape time: see census.
type Meters struct {
	Reg *prometheus.Registry
	all []prometheus.Collector

	turns, commits, batches            prometheus.Histogram
	records                            prometheus.Counter
	rounds, evaluated, missed          prometheus.Histogram
	truncated, starts, backfill, halts prometheus.Counter
	submitted, ended, prepulls         *prometheus.CounterVec
	waits                              *prometheus.HistogramVec
	requests, refused, mails           *prometheus.CounterVec
	connections                        *prometheus.GaugeVec
	latency                            *prometheus.HistogramVec

	scrubbed, damaged prometheus.Gauge

	clusters, qos metrics.First // labels of what is counted

	Cycles Cycles
}

// Bounds on labels whose values users and nodes bring.
const (
	MaxClusters = 16
	MaxQOS      = 16
	MaxProjects = 100
	MaxUsers    = 50
	MaxModels   = 32
	MaxLicenses = 100
	MaxNodes    = 200 // of those out of service
)

// New has all its counters at 0.
func New() *Meters {
	m := &Meters{Reg: prometheus.NewRegistry(), clusters: metrics.First{Max: MaxClusters}, qos: metrics.First{Max: MaxQOS}}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.all = append(m.all, c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.all = append(m.all, c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		m.all = append(m.all, h)
		return h
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.all = append(m.all, h)
		return h
	}
	short, waits := prometheus.ExponentialBuckets(0.0001, 2, 16), []float64{1, 5, 15, 60, 300, 900, 3600, 2 * 3600, 6 * 3600, 86400, 3 * 86400, 7 * 86400}

	m.turns = histogram("gctld_turn_duration_seconds", "Time from taking a batch of requests to its records being durable, in seconds.", short)
	m.commits = histogram("gctld_commit_duration_seconds", "Time of one synced commit of the store, in seconds.", short)
	m.batches = histogram("gctld_commit_records", "Records in one commit of the store.", prometheus.ExponentialBuckets(1, 4, 9))
	m.records = counter("gctld_records_total", "Records made durable.")

	m.rounds = histogram("gctld_scheduling_round_duration_seconds", "Time of one scheduling round, in seconds.", prometheus.ExponentialBuckets(0.00005, 2, 18))
	m.evaluated = histogram("gctld_scheduling_round_evaluated_jobs", "Jobs that one scheduling round looked at.", prometheus.ExponentialBuckets(1, 4, 10))
	m.truncated = counter("gctld_scheduling_rounds_truncated_total", "Scheduling rounds that ended before they had looked at all that waits.")
	m.starts = counter("gctld_jobs_started_total", "Attempts that were given resources.")
	m.backfill = counter("gctld_jobs_backfilled_total", "Attempts that started past a job with a reservation.")
	m.halts = counter("gctld_jobs_preempted_total", "Running jobs that were asked to end so that another could start.")
	m.missed = histogram("gctld_start_estimate_error_seconds", "Difference between a job's start and the first start that the plan promised it, in seconds, of jobs that had to wait.", prometheus.ExponentialBuckets(1, 4, 10))

	m.waits = histograms("gctld_job_wait_seconds", "Time from a job's submission to its first grant of resources, in seconds.", waits, "cluster", "qos")
	m.submitted = counters("gctld_jobs_submitted_total", "Submissions that reached the queue, by what became of them: accepted, or why they were refused.", "outcome")
	m.ended = counters("gctld_jobs_ended_total", "Jobs that ended, by their final state and reason.", "state", "reason")
	m.prepulls = counters("gctld_images_prepulled_total", "Images that nodes pulled ahead of the start of a waiting job, by outcome.", "outcome")

	m.requests = counters("gctld_http_requests_total", "Requests to the API that were answered, by route and status.", "route", "code")
	m.refused = counters("gctld_connections_refused_total", "Connections above a bound, by which: of an address, of a user, or of all.", "bound")
	m.mails = counters("gctld_mails_total", "Mails about jobs, by what became of each try: sent, failed, or over_limit, which is above limits.perUser.mailsPerDay.", "outcome")
	m.connections = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gctld_connections", Help: "Open connections: of visitors who have not said who they are, of users, of nodes and operators, and of those that are refused."}, []string{"class"})
	m.all = append(m.all, m.connections)
	m.scrubbed = prometheus.NewGauge(prometheus.GaugeOpts{Name: "gctld_scrub_timestamp_seconds", Help: "When all that is stored was last read to look for damage, in seconds since 1970; 0: not since the start."})
	m.damaged = prometheus.NewGauge(prometheus.GaugeOpts{Name: "gctld_scrub_damaged", Help: "Records, files of the store, uploaded directories and kept logs that were damaged then."})
	m.all = append(m.all, m.scrubbed, m.damaged)
	m.latency = histograms("gctld_http_request_duration_seconds", "Time to answer a request to the API, in seconds. Of routes that wait for a change or stream, the wait is in it.", prometheus.ExponentialBuckets(0.001, 4, 8), "route")

	m.Reg.MustRegister(m.all...)
	m.Reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Scrubbed notes a look through all that is stored.
func (m *Meters) Scrubbed(at time.Time, damaged int) {
	m.scrubbed.Set(float64(at.Unix()))
	m.damaged.Set(float64(damaged))
}

// Connections counts so many more open connections of a class.
func (m *Meters) Connections(class string, n int) {
	m.connections.WithLabelValues(class).Add(float64(n))
}

// Refused counts a connection that was above a bound.
func (m *Meters) Refused(bound string) { m.refused.WithLabelValues(bound).Inc() }

// Mailed counts a mail that was tried to send.
func (m *Meters) Mailed(outcome string) { m.mails.WithLabelValues(outcome).Inc() }

// Commit counts a turn that stored something.
func (m *Meters) Commit(turn, commit time.Duration, records int) {
	m.turns.Observe(turn.Seconds())
	m.commits.Observe(commit.Seconds())
	m.batches.Observe(float64(records))
	m.records.Add(float64(records))
}

// Round counts a scheduling round.
func (m *Meters) Round(took time.Duration, p *sched.Plan, missed []sched.Time) {
	for _, d := range missed {
		m.missed.Observe(float64(max(d, -d)) / 1000)
	}
	m.rounds.Observe(took.Seconds())
	m.Cycles.add(took, p)
	m.evaluated.Observe(float64(p.Stats.Evaluated))
	if p.Stats.Truncated {
		m.truncated.Inc()
	}
	m.starts.Add(float64(len(p.Starts)))
	m.halts.Add(float64(len(p.Halts)))
	for _, s := range p.Starts {
		if s.Backfilled {
			m.backfill.Inc()
		}
	}
}

// Prepulled counts images that nodes pulled ahead.
func (m *Meters) Prepulled(list []node.Prepulled) {
	for _, p := range list {
		outcome := "there"
		if p.Error != "" {
			outcome = "failed"
		}
		m.prepulls.WithLabelValues(outcome).Inc()
	}
}

// Submission counts one by its answer; one that nobody could take is none.
func (m *Meters) Submission(a control.Submitted, err error) {
	outcome := "accepted"
	if r, refused := errors.AsType[*state.Refusal](err); refused {
		outcome = string(r.Code)
	} else if err != nil {
		return
	} else if len(a.Past) == 0 {
		m.Cycles.Submitted.Add(1)
	}
	m.submitted.WithLabelValues(outcome).Inc()
}

// Changes counts what became of jobs between two views.
func (m *Meters) Changes(before, after *state.View, changed []job.Number) {
	changed = slices.Clone(changed)
	slices.Sort(changed)
	for _, n := range slices.Compact(changed) {
		j, old := after.Job(n), before.Job(n)
		if j == nil || j.Tasks != nil { // an array's tasks are counted, and not the array
			continue
		}
		if j.State.Final() && (old == nil || !old.State.Final()) {
			m.Cycles.endings[EndingOf(j)].Add(1)
			m.ended.WithLabelValues(string(j.State), string(j.Reason)).Inc()
		}
		if first := old == nil || old.Tries == 0; first && j.Tries == 1 && j.Try() > 0 {
			cluster := strconv.Itoa(ClusterOf(after, j))
			m.waits.WithLabelValues(m.clusters.Label(cluster), m.qos.Label(j.Owner.QOS)).Observe(float64(j.Last().Start-j.Submitted) / 1000)
		}
	}
}

// ClusterOf is the cluster that a job asks for, or else where it runs; 0: any.
func ClusterOf(v *state.View, j *state.Job) int {
	if n := j.Request.Shape.Cluster; n != 0 || j.Attempt == nil || !j.State.Active() || len(j.Attempt.Ranks) == 0 {
		return n
	}
	if n := v.Node(j.Attempt.Ranks[0].Alloc.Node); n != nil {
		return n.Inventory.Cluster
	}
	return 0
}

// Route measures the requests of one route.
func (m *Meters) Route(pattern string, next http.HandlerFunc) http.HandlerFunc {
	latency := m.latency.WithLabelValues(pattern)
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		note := &statusWriter{ResponseWriter: w}
		defer func() {
			latency.Observe(time.Since(began).Seconds())
			m.requests.WithLabelValues(pattern, note.code()).Inc()
		}()
		next(note, r)
	}
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// code is the status as a label. A connection that was taken over or has gone
// has none.
func (w *statusWriter) code() string {
	if w.status == 0 {
		return "none"
	}
	return strconv.Itoa(w.status)
}
