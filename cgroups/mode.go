package cgroups

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// Mode says which cgroup hierarchies a host has.
type Mode string

// The three ways in which distributions mount cgroups.
const (
	V1     Mode = "v1"     // one hierarchy per controller
	V2     Mode = "v2"     // one unified hierarchy
	Hybrid Mode = "hybrid" // v1 controllers, and a v2 hierarchy without any
)

// Host is the cgroup set-up of this machine, as read from the mount table.
type Host struct {
	Mode Mode
	// Mounts maps a v1 controller ("memory", "name=systemd") to its mount
	// point; the key "" is the v2 hierarchy. It is never changed.
	Mounts map[string]string
}

// detected is what Detect found. It does not change while the machine runs.
var detected atomic.Pointer[Host]

// Detect reads this machine's mount table, until it has found cgroups there.
func Detect() (Host, error) {
	if h := detected.Load(); h != nil {
		return *h, nil
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Host{}, fmt.Errorf("read mount table: %w", err)
	}
	defer f.Close()
	h, err := parseMountinfo(f)
	if err == nil {
		detected.Store(&h)
	}
	return h, err
}

// parseMountinfo picks the cgroup mounts out of a mountinfo stream. The first
// mount of a controller counts: later ones are copies made for containers.
func parseMountinfo(r io.Reader) (Host, error) {
	h := Host{Mounts: map[string]string{}}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		head, tail, ok := strings.Cut(sc.Text(), " - ")
		fields, types := strings.Fields(head), strings.Fields(tail)
		if !ok || len(fields) < 5 || len(types) < 3 {
			continue
		}
		point := fields[4]
		switch types[0] {
		case "cgroup2":
			h.add("", point)
		case "cgroup":
			for opt := range strings.SplitSeq(types[2], ",") {
				if v1Controllers[opt] || strings.HasPrefix(opt, "name=") {
					h.add(opt, point)
				}
			}
		}
	}
	if err := sc.Err(); err != nil {
		return Host{}, fmt.Errorf("read mount table: %w", err)
	}
	_, unified := h.Mounts[""]
	switch {
	case len(h.Mounts) == 0:
		return h, fmt.Errorf("no cgroup file system is mounted; mount one with: mount -t cgroup2 none /sys/fs/cgroup")
	case unified && len(h.Mounts) == 1:
		h.Mode = V2
	case unified:
		h.Mode = Hybrid
	default:
		h.Mode = V1
	}
	return h, nil
}

var v1Controllers = map[string]bool{
	"cpu": true, "cpuacct": true, "cpuset": true, "memory": true, "devices": true, "freezer": true,
	"blkio": true, "pids": true, "hugetlb": true, "net_cls": true, "net_prio": true, "perf_event": true,
	"rdma": true, "misc": true,
}

func (h Host) add(controller, point string) {
	if _, seen := h.Mounts[controller]; !seen {
		h.Mounts[controller] = point
	}
}

// points returns each distinct mount point once, sorted: several v1
// controllers may share one.
func (h Host) points() []string {
	var out []string
	for _, p := range h.Mounts {
		out = append(out, p)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Controllers are the mount points of v1 in which containers have a group, likewise.
func (h Host) Controllers() []string {
	v1 := Host{Mounts: map[string]string{}}
	for name, point := range h.Mounts {
		if v1Controllers[name] || name == "name=systemd" {
			v1.Mounts[name] = point
		}
	}
	return v1.points()
}

// dir returns where the group lies in the hierarchy of a v1 controller, or in
// the v2 hierarchy where that has the controllers. Memory is the trap: on a
// hybrid host the v2 hierarchy exists too but counts nothing.
func (h Host) dir(controller, path string) (string, bool) {
	if point, ok := h.Mounts[controller]; ok {
		return filepath.Join(point, path), true
	}
	if h.Mode == V2 {
		return filepath.Join(h.Mounts[""], path), true
	}
	return "", false
}
