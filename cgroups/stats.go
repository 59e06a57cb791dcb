package cgroups

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
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
	r := reader{group: g, buf: make([]byte, 8<<10)} // memory.stat has 3 KiB
	s := r.totals()
	s.Pids = r.number("pids", "pids.current")
	if g.host.Mode == V2 {
		s.MemoryBytes = r.number("memory", "memory.current")
		s.HeldBytes = r.sum("memory", "memory.stat", "anon", "shmem")
	} else {
		s.MemoryBytes = r.number("memory", "memory.usage_in_bytes")
		s.HeldBytes = r.sum("memory", "memory.stat", "total_rss", "total_shmem")
	}
	return s, r.end()
}

// Totals is Stats without what the group has at the moment, in half the reads.
func (g *Group) Totals() (Stats, error) {
	r := reader{group: g}
	s := r.totals()
	return s, r.end()
}

// ForgetPeak makes Stats.PeakBytes count from now, where the kernel can.
func (g *Group) ForgetPeak() {
	if dir, ok := g.host.dir("memory", g.path); ok && g.host.Mode != V2 {
		fd, done, err := g.open(filepath.Join(dir, "memory.max_usage_in_bytes"), unix.O_WRONLY)
		if err == nil {
			_, _ = unix.Pwrite(fd, []byte("0"), 0)
			done()
		}
	}
}

// reader reads figures and keeps the first error; what does not exist reads as 0.
type reader struct {
	group *Group
	found bool // a file of the group was there
	buf   []byte
	err   error
}

func (r *reader) totals() (s Stats) {
	if r.group.host.Mode == V2 {
		s.CPUNanos = r.sum("cpu", "cpu.stat", "usage_usec") * 1000
		s.PeakBytes = r.number("memory", "memory.peak")
		s.OOMKills = r.sum("memory", "memory.events", "oom_kill")
	} else {
		s.CPUNanos = r.number("cpuacct", "cpuacct.usage")
		s.PeakBytes = r.number("memory", "memory.max_usage_in_bytes")
		s.OOMKills = r.sum("memory", "memory.oom_control", "oom_kill")
	}
	s.PidsDenied = r.sum("pids", "pids.events", "max")
	return s
}

// end is what went wrong.
func (r *reader) end() error {
	if r.err == nil && !r.found {
		return fmt.Errorf("read cgroup %s: %w", r.group.path, os.ErrNotExist)
	}
	return r.err
}

// file reads a file by three system calls, where os.ReadFile makes eight: it would
// have the file watched, and ask for its size, which these files do not tell. What
// it returns is good until the next one is read.
func (r *reader) file(controller, name string) []byte {
	dir, ok := r.group.host.dir(controller, r.group.path)
	if !ok || r.err != nil {
		return nil
	}
	data, err := r.read(filepath.Join(dir, name))
	switch {
	case err == nil:
		r.found = true
	case !gone(err):
		r.err = fmt.Errorf("read cgroup %s: %s: %w", r.group.path, name, err)
	}
	return data
}

// read reads a whole file of the kernel's, which gives all of it at once if there is
// room for it.
func (r *reader) read(path string) ([]byte, error) {
	fd, done, err := r.group.open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer done()
	if r.buf == nil {
		r.buf = make([]byte, 512)
	}
	n := 0
	for {
		got, err := again(func() (int, error) { return unix.Pread(fd, r.buf[n:], int64(n)) })
		if err != nil {
			return nil, err
		}
		if n += got; n < len(r.buf) {
			return r.buf[:n], nil
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
}

// again makes a system call until no signal breaks it off.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func (r *reader) number(controller, name string) uint64 {
	data := bytes.TrimSpace(r.file(controller, name))
	if len(data) == 0 {
		return 0
	}
	return r.parse(name, data)
}

// sum adds up the values of these keys in a flat file of lines "key value".
func (r *reader) sum(controller, name string, keys ...string) (n uint64) {
	for line := range bytes.Lines(r.file(controller, name)) {
		key, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if ok && slices.Contains(keys, string(key)) {
			n += r.parse(name, value)
		}
	}
	return n
}

func (r *reader) parse(name string, data []byte) uint64 {
	n, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("read cgroup %s: file %s has %q, want a number", r.group.path, name, data)
	}
	return n
}
