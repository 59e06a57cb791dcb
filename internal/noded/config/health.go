package config

import (
	"path/filepath"
	"slices"
	"time"
)

// Health is what the node looks at by itself, beside its own directories. What
// fails keeps jobs away until all has passed again.
type Health struct {
	// Every is how often the programs run. What the node looks at itself it does
	// more often. Default 5m; 10s to 24h.
	Every Duration `yaml:"every"`
	// Programs are the site's own, run as root one after the other. One that fails
	// takes the node out until all have run again and passed. Default: none.
	Programs []Program `yaml:"programs"`
	// Skip names checks that are not made: storage, mounts, time, memory, edac,
	// nvlink, pcie, throttle, pages. Default: none.
	Skip []string `yaml:"skip"`
	// Mounts are directories where something has to be mounted. Default: none.
	Mounts []string `yaml:"mounts"`
	// Answer is how long a directory of storage or mounts may take to answer.
	// Default 10s; 1s to 10m.
	Answer Duration `yaml:"answer"`
	// TimeOffset is how far the clock may be from the controller's. Default 10s; 2s to 1h.
	TimeOffset Duration `yaml:"timeOffset"`
	// FreeMemory has to be free or reclaimable. Default: an eighth of
	// reserve.memory.
	FreeMemory Size `yaml:"freeMemory"`
	// Uncorrected and Corrected are how many errors of the machine's memory there
	// may be since it was booted. Default 0 uncorrected, and corrected without bound.
	Uncorrected int `yaml:"uncorrected"`
	Corrected   int `yaml:"corrected"`
	// NVLinks is how many links each GPU has to have. Default: as many as the one
	// of its model here that has most.
	NVLinks int `yaml:"nvlinks"`
	// Throttled is for how long a GPU's hardware may slow it down. Default 30s; 5s to 1h.
	Throttled Duration `yaml:"throttled"`
}

// The checks that can be skipped.
const (
	CheckStorage  = "storage"
	CheckMounts   = "mounts"
	CheckTime     = "time"
	CheckMemory   = "memory"
	CheckEDAC     = "edac"
	CheckNVLink   = "nvlink"
	CheckPCIe     = "pcie"
	CheckThrottle = "throttle"
	CheckPages    = "pages"
	CheckProgram  = "program" // cannot be skipped: there are programs, or none
)

var healthChecks = []string{CheckStorage, CheckMounts, CheckTime, CheckMemory, CheckEDAC, CheckNVLink, CheckPCIe, CheckThrottle, CheckPages}

func (h *Health) setDefaults(reserved Size) {
	setDefault(&h.Every, Duration(5*time.Minute))
	setTimeouts(h.Programs, time.Minute)
	setDefault(&h.Answer, Duration(10*time.Second))
	setDefault(&h.TimeOffset, Duration(10*time.Second))
	setDefault(&h.FreeMemory, reserved/8)
	setDefault(&h.Throttled, Duration(30*time.Second))
}

// Makes says whether a check is made.
func (h *Health) Makes(check string) bool { return !slices.Contains(h.Skip, check) }

// Checks are those of the machine that are made, by name.
func (h *Health) Checks() (list []string) {
	for _, name := range []string{CheckStorage, CheckMounts, CheckTime, CheckMemory, CheckEDAC} {
		if h.Makes(name) {
			list = append(list, name)
		}
	}
	if len(h.Programs) > 0 {
		list = append(list, CheckProgram)
	}
	return list
}

func checkHealth(c *Config, bad func(string, string, ...any)) {
	h := &c.Health
	checkProgramList("health.programs", h.Programs, bad)
	bounds[Duration]{Duration(10 * time.Second), Duration(24 * time.Hour)}.check(bad, "health.every", h.Every)
	bounds[Duration]{Duration(time.Second), Duration(10 * time.Minute)}.check(bad, "health.answer", h.Answer)
	bounds[Duration]{Duration(2 * time.Second), Duration(time.Hour)}.check(bad, "health.timeOffset", h.TimeOffset)
	bounds[Duration]{Duration(5 * time.Second), Duration(time.Hour)}.check(bad, "health.throttled", h.Throttled)
	for _, s := range h.Skip {
		if !slices.Contains(healthChecks, s) {
			bad("health.skip", "%q: there are %v", s, healthChecks)
		}
	}
	if len(h.Mounts) > maxListed {
		bad("health.mounts", "%d of them: at most %d", len(h.Mounts), maxListed)
	}
	for _, m := range h.Mounts {
		if !filepath.IsAbs(m) || filepath.Clean(m) != m {
			bad("health.mounts", "%q: must be an absolute path without a slash at its end", m)
		}
	}
	for _, one := range []struct {
		key string
		n   int
	}{{"uncorrected", h.Uncorrected}, {"corrected", h.Corrected}, {"nvlinks", h.NVLinks}} {
		if one.n < 0 {
			bad("health."+one.key, "%d: must be 0 or more", one.n)
		}
	}
}
