package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gbatch/internal/ctld"
	ctldsite "gbatch/internal/ctld/site"
)

type certificate = func() *tls.Certificate

func now() time.Time { return time.Now() }

// site is the lab: its controller, its nodes and its people.
type site struct {
	t     *testing.T
	rand  *rand.Rand // of the harness's goroutine alone
	began time.Time
	dir   string
	pin   string
	logs  *journal
	wire  *http.Transport // of commands
	nodes []*machine
	users []string
	truth *truth
	found findings

	mu          sync.Mutex
	socket, net *listener
	stop        func()
	changes     int // of the file
}

// journal keeps what the controller logs as a warning or an error.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (s *site) config() string { return filepath.Join(s.dir, "gctld.yaml") }

// limits is the part of the configuration that operators of the lab change.
type limits struct{ gpus, matlab, budget int }

// configure writes the controller's file.
func (s *site) configure(l limits) {
	text := fmt.Sprintf(`dir: %[1]s/ctld
socket: %[1]s/s
listen: "192.0.2.1:7077"
advertise: "192.0.2.1:7077"
reserveMiB: 1
operators: [olga]
projects:
  - {name: default}
  - {name: vision, shares: 3}
  - {name: robotics, shares: 2}
  - {name: nlp, shares: 1, budget: %[4]d}
licenses: {matlab: %[3]d}
limits:
  defaultDuration: 1 day
  maxDuration: 7 days
  defaultMinDuration: 30 minutes
policy:
  qos:
    normal: {priority: 500}
    scavenge: {priority: 0}
    urgent: {priority: 1000, preempts: [scavenge], perUser: {running: 4}}
  defaultQos: normal
  perUser: {gpus: %[2]d, queued: 5000}
`, s.dir, l.gpus, l.matlab, l.budget)
	if err := os.WriteFile(s.config(), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) listeners() (socket, network *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.socket, s.net
}

// start begins a process of the controller.
func (s *site) start() {
	s.t.Helper()
	socket, network := newListener(address{"unix", s.dir + "/s"}), newListener(address{"tcp", "192.0.2.1:7077"})
	m := ctld.Machine{
		Listen: func() (net.Listener, net.Listener) { return socket, network },
		Clocks: func() (time.Time, time.Duration) { return time.Now().Round(0), time.Since(s.began) + time.Hour },
	}
	log := slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := ctld.OpenOn(m, func() (ctldsite.Config, error) { return ctldsite.Read(s.config()) }, log)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.pin == "" {
		_, s.pin, _ = strings.Cut(server.Addresses()[1], "#")
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- errors.Join(server.Run(ctx), server.Close()) }() // ended by stop
	s.mu.Lock()
	defer s.mu.Unlock()
	s.socket, s.net = socket, network
	s.stop = func() {
		s.wire.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		s.mu.Lock()
		s.socket, s.net = nil, nil
		s.mu.Unlock()
	}
}

// upgrade is an end of the controller, and its start some time later.
func (s *site) upgrade(later time.Duration) {
	s.stop()
	time.Sleep(later)
	s.start()
}
