package exporter

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/devices"
	"gbatch/internal/noded/identity"
)

// Node is what metrics tell of the node, beside what is counted.
type Node struct {
	Config     *config.Config
	Log        *slog.Logger
	Version    string
	Host       *identity.Host
	Devices    devices.Devices
	Containers func() ([]Container, map[node.Phase]int) // those that have not ended, by id; and all by phase
	Healthy    func() bool
	Failing    func() map[string]bool // checks of the machine that found something
	Shims      func() int             // that wait for a container
	Silence    func() time.Duration   // since the controller answered
	Images     func() (images int, bytes int64)
	KeptLogs   func() int64                            // bytes
	Unsent     func() (bytes int64, age time.Duration) // of logs that are kept elsewhere too
	Expiry     func() time.Time                        // of the node's certificate; zero: it has none
}

// Container is one that has not ended.
type Container struct {
	ID            job.RankID
	Place         job.RankID // whose control group it has
	Job           string     // as users know it: 12, or 12_3 for a task
	User, Project string
	Mem           int64
	GPUs          []string
}

// Exporter tells how the node fares: to Prometheus, and which jobs hold which
// GPU to NVIDIA's exporter.
type Exporter struct {
	Node
	counters *Counters
	jobMap   *jobMap
	listener net.Listener // nil: nobody may read metrics
	server   *http.Server
}

// New makes an exporter that serves nothing yet.
func New(n Node, counted *Counters) *Exporter {
	e := &Exporter{Node: n, counters: counted, jobMap: newJobMap(n.Config.Metrics.JobMap)}
	counted.reg.MustRegister(e.collector(), e.dcgmCollector())
	return e
}

// Close leaves no address and no file behind; it is called once nothing serves.
func (e *Exporter) Close() error {
	if e.listener != nil {
		_ = e.listener.Close()
	}
	return e.jobMap.clear()
}
