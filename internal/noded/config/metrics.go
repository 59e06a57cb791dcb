package config

import (
	"net"
	"net/netip"
	"path/filepath"
	"slices"
)

// Metrics is about the metrics that Prometheus reads.
type Metrics struct {
	// Listen is a TCP address for /metrics, as 127.0.0.1:9401. Default: none.
	Listen string `yaml:"listen"`
	// TokenFile holds a password that whoever reads them must show, as
	// "Authorization: Bearer". Metrics name users and their jobs, so it is needed
	// unless Listen is an address of this machine only. It is read at the start.
	// Default: none.
	TokenFile string `yaml:"tokenFile"`
	// Aliases are other sets of names to have too: dcgm, as NVIDIA's exporter
	// has them. Default: none.
	Aliases []string `yaml:"aliases"`
	// JobMap is a directory for a file for each GPU that jobs hold, with their
	// numbers, for NVIDIA's exporter (--hpc-job-mapping-dir). Other files there
	// that are named by a number are removed. Default: none.
	JobMap string `yaml:"jobMap"`
}

const DCGMAliases = "dcgm"

func checkMetrics(c *Config, bad func(string, string, ...any)) {
	m := &c.Metrics
	if m.Listen != "" {
		host, _, err := net.SplitHostPort(m.Listen)
		switch {
		case err != nil:
			bad("metrics.listen", "%q: want ADDRESS:PORT, as 127.0.0.1:9401", m.Listen)
		case m.TokenFile == "" && !loopback(host):
			bad("metrics.listen", "%s can be reached from other machines, and metrics name users and their jobs: give a metrics.tokenFile, or listen on 127.0.0.1", m.Listen)
		}
	}
	if m.Listen == "" && (m.TokenFile != "" || len(m.Aliases) > 0) {
		bad("metrics.listen", "missing: without it there are no metrics that the rest could be about")
	}
	for key, path := range map[string]string{"tokenFile": m.TokenFile, "jobMap": m.JobMap} {
		if path != "" && !filepath.IsAbs(path) {
			bad("metrics."+key, "%q: must be an absolute path", path)
		}
	}
	if i := slices.IndexFunc(m.Aliases, func(a string) bool { return a != DCGMAliases }); i >= 0 {
		bad("metrics.aliases", "%q: there is %s", m.Aliases[i], DCGMAliases)
	}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
