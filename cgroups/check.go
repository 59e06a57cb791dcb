package cgroups

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Problem is something that keeps containers from being limited on a host.
type Problem struct {
	What string // a sentence
	Fix  string // what to run or set
	// Fatal says that no container can be started; else something weaker
	// happens, which What says.
	Fatal bool
}

// Check says what this machine's cgroups lack for groups below base, which is
// "/" or the group that systemd delegated to the daemon (see Base).
func Check(base string) []Problem {
	h, err := Detect()
	if err != nil {
		return []Problem{{What: err.Error(), Fix: "mount -t cgroup2 none /sys/fs/cgroup", Fatal: true}}
	}
	return h.check(base)
}

// needed are the controllers that containers are made with.
var needed = []string{"cpu", "cpuset", "memory", "pids"}

func (h Host) check(base string) []Problem {
	if h.Mode == V2 {
		return h.checkV2(base)
	}
	var out []Problem
	for _, c := range append([]string{"cpuacct", "devices", "freezer"}, needed...) {
		if h.Mounts[c] == "" {
			out = append(out, missingV1(c))
		}
	}
	if dir, ok := h.dir("memory", "/"); ok && !fileExists(filepath.Join(dir, "memory.memsw.limit_in_bytes")) {
		out = append(out, Problem{
			What: "the kernel does not count swap, so a job may swap beyond its memory limit",
			Fix:  "add swapaccount=1 to the kernel's command line, or turn swap off with: swapoff -a",
		})
	}
	for _, point := range h.points() {
		out = append(out, writable(filepath.Join(point, base))...)
	}
	return out
}

func missingV1(controller string) Problem {
	p := Problem{
		What:  fmt.Sprintf("cgroup controller %s is not mounted", controller),
		Fix:   fmt.Sprintf("mkdir -p /sys/fs/cgroup/%s && mount -t cgroup -o %s cgroup /sys/fs/cgroup/%s", controller, controller, controller),
		Fatal: true,
	}
	if controller == "memory" {
		p.Fix += "; if that fails, add cgroup_enable=memory to the kernel's command line"
	}
	return p
}

func (h Host) checkV2(base string) []Problem {
	dir := filepath.Join(h.Mounts[""], base)
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return []Problem{{What: fmt.Sprintf("cgroup %s cannot be read: %v", base, err), Fix: "start the daemon by its systemd unit", Fatal: true}}
	}
	have := strings.Fields(string(data))
	var out []Problem
	for _, c := range needed {
		if !slices.Contains(have, c) {
			out = append(out, Problem{
				What:  fmt.Sprintf("cgroup controller %s is not available in %s", c, base),
				Fix:   "set Delegate=yes in the daemon's systemd unit, then: systemctl daemon-reload and restart the daemon",
				Fatal: true,
			})
		}
	}
	return append(out, writable(dir)...)
}

func writable(dir string) []Problem {
	if unix.Access(dir, unix.W_OK) == nil || !fileExists(dir) {
		return nil // a missing one is made later, below one that is checked
	}
	return []Problem{{
		What:  fmt.Sprintf("%s cannot be written", dir),
		Fix:   "run the daemon as root, outside of a container that mounts cgroups read-only",
		Fatal: true,
	}}
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
