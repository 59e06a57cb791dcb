package noded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gbatch/internal/metrics"
	"gbatch/internal/node"
	"gbatch/oci/image"
)

// measures are what the daemon counts as it happens. What is so at one moment
// is read at scrape time: see metrics_read.go.
type measures struct {
	reg *prometheus.Registry

	launches prometheus.Histogram
	steps    *prometheus.HistogramVec
	pulls    *prometheus.HistogramVec
	ends     *prometheus.CounterVec
	logs     prometheus.Counter
	oom      prometheus.Counter
}

func newMeasures() *measures {
	m := &measures{
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
		oom:  prometheus.NewCounter(prometheus.CounterOpts{Name: "gnoded_oom_kills_total", Help: "Processes that the memory limits of containers killed, of those that ended."}),
	}
	m.reg.MustRegister(m.launches, m.steps, m.pulls, m.ends, m.logs, m.oom,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *measures) pulled(took time.Duration, err error) {
	result := "ok"
	if pull, is := errors.AsType[*image.PullError](err); is {
		result = string(pull.Kind)
	} else if err != nil {
		result = "stopped"
	}
	m.pulls.WithLabelValues(result).Observe(took.Seconds())
}

func (m *measures) ended(e *node.Exit) { m.ends.WithLabelValues(string(e.Reason)).Inc() }

// listener serves the metrics, if the configuration asks for it.
type listener struct {
	ln  net.Listener
	srv *http.Server
}

// Bounds on those who read metrics, or say that they will.
const (
	metricsHeader = 10 * time.Second
	metricsAnswer = 30 * time.Second
	metricsIdle   = 2 * time.Minute
)

func (a *Agent) listenMetrics() error {
	c := a.cfg.Metrics
	if c.Listen == "" {
		return nil
	}
	handler := metrics.Handler(a.measures.reg)
	if c.TokenFile != "" {
		token, err := readToken(c.TokenFile)
		if err != nil {
			return err
		}
		handler = behindToken(token, handler)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", handler)
	ln, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen for metrics: %w (change metrics.listen in the configuration, or stop what uses it)", err)
	}
	a.log.Info("metrics are served", "address", ln.Addr())
	a.metricsServer = &listener{ln, &http.Server{
		Handler: mux, ReadHeaderTimeout: metricsHeader, WriteTimeout: metricsAnswer, IdleTimeout: metricsIdle, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}}
	return nil
}

// metricsLoop serves until ctx ends.
func (a *Agent) metricsLoop(ctx context.Context) {
	l := a.metricsServer
	if l == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = l.srv.Close() })
	defer stop()
	if err := l.srv.Serve(l.ln); ctx.Err() == nil {
		a.log.Error("metrics are not served any more", "error", err)
	}
}

func readToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read metrics.tokenFile: %w", err)
	}
	token := string(bytes.TrimSpace(b))
	if len(token) < 16 {
		return "", fmt.Errorf("metrics.tokenFile %s: the token has %d characters: want at least 16", path, len(token))
	}
	return token, nil
}

// behindToken lets those in who show the token. How long it takes to say no
// tells nothing of how it differs.
func behindToken(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if got := sha256.Sum256([]byte(shown)); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the node's metrics are for who has the token in its metrics.tokenFile", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
