package config

import (
	"net/url"
	"path/filepath"
	"time"

	"gbatch/internal/reach"
)

// Data is about the inputs and outputs of jobs.
type Data struct {
	// Dir takes inputs while their jobs run, and those that are kept for
	// others. Default: data below the state directory.
	Dir string `yaml:"dir"`
	// Endpoint is where s3:// leads for jobs that do not say so, as
	// https://s3.example.org. Jobs may reach it wherever it is. Default: Amazon's.
	Endpoint string `yaml:"endpoint"`
	// Region of that endpoint. Default: us-east-1, at Amazon the bucket's.
	Region string `yaml:"region"`
	// Hosts inside the site that jobs' URIs may name: HOST, HOST:PORT, or a
	// network as 10.2.0.0/16. Default: none; addresses of the internet always.
	Hosts []string `yaml:"hosts"`
	// PlainHTTP allows http:// beside https://. Default false.
	PlainHTTP bool `yaml:"plainHTTP"`
	// CAFile is a file of certificate authorities (PEM) for these servers, in
	// place of the system's.
	CAFile string `yaml:"caFile"`
	// MaxInput bounds the inputs of one rank together. Default 1TiB; at least 1MiB.
	MaxInput Size `yaml:"maxInput"`
	// MaxOutput bounds the outputs of one rank together. Default 1TiB; at least 1MiB.
	MaxOutput Size `yaml:"maxOutput"`
	// CacheSize bounds the inputs that are kept for other jobs; those in use are
	// never removed. Default 50GiB.
	CacheSize Size `yaml:"cacheSize"`
	// Parallel is how many requests one transfer makes at once. Default 8; 1 to 64.
	Parallel int `yaml:"parallel"`
	// Stall is how long nothing may come before a request is made again.
	// Default 1m; 100ms to 1h.
	Stall Duration `yaml:"stall"`
	// Timeout bounds all inputs of a rank together, and its outputs. Default
	// 12h; 1s to 30 days.
	Timeout Duration `yaml:"timeout"`
}

func (c *Data) setDefaults(stateDir string) {
	setDefault(&c.Dir, stateDir+"/data")
	setDefault(&c.MaxInput, 1<<40)
	setDefault(&c.MaxOutput, 1<<40)
	setDefault(&c.CacheSize, 50<<30)
	setDefault(&c.Parallel, 8)
	setDefault(&c.Stall, Duration(time.Minute))
	setDefault(&c.Timeout, Duration(12*time.Hour))
}

func checkData(c *Config, bad func(string, string, ...any)) {
	d := &c.Data
	if !filepath.IsAbs(d.Dir) {
		bad("data.dir", "%q: must be an absolute path", d.Dir)
	}
	if d.Endpoint != "" {
		if u, err := url.Parse(d.Endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
			bad("data.endpoint", "%q: write https://HOST or https://HOST:PORT", d.Endpoint)
		} else if u.Scheme == "http" && !d.PlainHTTP {
			bad("data.endpoint", "%q: needs plainHTTP: true, or https", d.Endpoint)
		}
	}
	for _, h := range d.Hosts {
		if wrong := reach.CheckHost(h); wrong != "" {
			bad("data.hosts", "%q: %s", h, wrong)
		}
	}
	if d.Parallel < 1 || d.Parallel > 64 {
		bad("data.parallel", "%d: must be 1 to 64", d.Parallel)
	}
	bounds[Size]{1 << 20, 1 << 60}.check(bad, "data.maxInput", d.MaxInput)
	bounds[Size]{1 << 20, 1 << 60}.check(bad, "data.maxOutput", d.MaxOutput)
	bounds[Size]{0, 1 << 60}.check(bad, "data.cacheSize", d.CacheSize)
	bounds[Duration]{Duration(100 * time.Millisecond), Duration(time.Hour)}.check(bad, "data.stall", d.Stall)
	bounds[Duration]{Duration(time.Second), Duration(30 * 24 * time.Hour)}.check(bad, "data.timeout", d.Timeout)
}
