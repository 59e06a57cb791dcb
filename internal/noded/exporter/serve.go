package exporter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"gbatch/internal/metrics"
)

// Bounds on those who read metrics, or say that they will.
const (
	metricsHeader = 10 * time.Second
	metricsAnswer = 30 * time.Second
	metricsIdle   = 2 * time.Minute
)

// Listen takes the address of the metrics, if the configuration names one.
func (e *Exporter) Listen() error {
	c := e.Config.Metrics
	if c.Listen == "" {
		return nil
	}
	handler := metrics.Handler(e.counters.reg)
	if c.TokenFile != "" {
		token, err := readToken(c.TokenFile)
		if err != nil {
			return err
		}
		handler = behindToken(token, handler)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", handler)
	var err error
	if e.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return fmt.Errorf("listen for metrics: %w (change metrics.listen in the configuration, or stop what uses it)", err)
	}
	e.Log.Info("metrics are served", "address", e.Addr())
	e.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: metricsHeader, WriteTimeout: metricsAnswer, IdleTimeout: metricsIdle, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(e.Log.Handler(), slog.LevelDebug),
	}
	return nil
}

// Addr is where the metrics are served.
func (e *Exporter) Addr() net.Addr { return e.listener.Addr() }

// Run serves until ctx ends.
func (e *Exporter) Run(ctx context.Context) {
	if e.server == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = e.server.Close() })
	defer stop()
	if err := e.server.Serve(e.listener); ctx.Err() == nil {
		e.Log.Error("metrics are not served any more", "error", err)
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
