package cgroups

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Stats is what a group uses and has used.
type Stats struct {
	CPUNanos    uint64 `json:"cpu_nanos"`    // processor time since the group was made
	MemoryBytes uint64 `json:"memory_bytes"` // charged now: anonymous, tmpfs and page cache
	// HeldBytes is the part of MemoryBytes that the kernel cannot take back by
	// itself: anonymous memory, and tmpfs pages.
	HeldBytes uint64 `json:"held_bytes"`
	// PeakBytes is the most that was ever charged; 0 on a v2 kernel before
	// 5.19, which does not keep it.
	PeakBytes uint64 `json:"peak_bytes"`
	OOMKills  uint64 `json:"oom_kills"` // processes that the memory limit killed
	Pids      uint64 `json:"pids"`      // processes and threads now
	// PidsDenied counts the forks that the limit of processes refused.
	PidsDenied uint64 `json:"pids_denied"`
}

// Stats reads the group's figures: a few small files. A controller that
// the host does not have leaves its figures at 0; a group that is gone is an
// error that wraps os.ErrNotExist.
func (g *Group) Stats() (Stats, error) {
	if !g.Exists() {
		return Stats{}, fmt.Errorf("read cgroup %s: %w", g.path, os.ErrNotExist)
	}
	r := reader{group: g}
	var s Stats
	if g.host.Mode == V2 {
		s.CPUNanos = r.keyed("cpu", "cpu.stat", "usage_usec") * 1000
		s.MemoryBytes = r.number("memory", "memory.current")
		s.HeldBytes = r.keyed("memory", "memory.stat", "anon") + r.keyed("memory", "memory.stat", "shmem")
		s.PeakBytes = r.number("memory", "memory.peak")
		s.OOMKills = r.keyed("memory", "memory.events", "oom_kill")
	} else {
		s.CPUNanos = r.number("cpuacct", "cpuacct.usage")
		s.MemoryBytes = r.number("memory", "memory.usage_in_bytes")
		s.HeldBytes = r.keyed("memory", "memory.stat", "total_rss") + r.keyed("memory", "memory.stat", "total_shmem")
		s.PeakBytes = r.number("memory", "memory.max_usage_in_bytes")
		s.OOMKills = r.keyed("memory", "memory.oom_control", "oom_kill")
	}
	s.Pids = r.number("pids", "pids.current")
	s.PidsDenied = r.keyed("pids", "pids.events", "max")
	return s, r.err
}

// ForgetPeak makes Stats.PeakBytes count from now, where the kernel can.
func (g *Group) ForgetPeak() {
	if dir, ok := g.host.dir("memory", g.path); ok && g.host.Mode != V2 {
		_ = os.WriteFile(filepath.Join(dir, "memory.max_usage_in_bytes"), []byte("0"), 0)
	}
}

// reader reads single values and keeps the first error; what does not exist
// reads as 0.
type reader struct {
	group *Group
	err   error
}

func (r *reader) file(controller, name string) []byte {
	dir, ok := r.group.host.dir(controller, r.group.path)
	if !ok || r.err != nil {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.err = fmt.Errorf("read cgroup %s: %w", r.group.path, err)
	}
	return data
}

func (r *reader) number(controller, name string) uint64 {
	data := bytes.TrimSpace(r.file(controller, name))
	if len(data) == 0 {
		return 0
	}
	return r.parse(name, data)
}

// keyed reads one "key value" line of a flat file.
func (r *reader) keyed(controller, name, key string) uint64 {
	for line := range bytes.Lines(r.file(controller, name)) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == key {
			return r.parse(name, f[1])
		}
	}
	return 0
}

func (r *reader) parse(name string, data []byte) uint64 {
	n, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("read cgroup %s: file %s has %q, want a number", r.group.path, name, data)
	}
	return n
}
