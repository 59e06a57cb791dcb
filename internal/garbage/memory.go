package garbage

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory is what the machine has, or this process may have of it; 0: that is not known.
func memory() uint64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	all := uint64(s.Totalram) * uint64(s.Unit)
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil { // a machine without control groups bounds nothing
		return all
	}
	return bounded(all, "/sys/fs/cgroup", string(self))
}

// bounded is the least of what there is and what the control groups of a process may have, whose
// /proc/self/cgroup is self: its own and those above. They are below root, where all systems have them.
func bounded(all uint64, root, self string) uint64 {
	for line := range strings.Lines(self) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, own, found := strings.Cut(rest, ":")
		dir, file := root, "memory.max"
		if controllers != "" {
			dir, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		if !found || controllers != "" && controllers != "memory" {
			continue
		}
		for at := path.Join("/", own); ; at = path.Dir(at) {
			text, _ := os.ReadFile(filepath.Join(dir, at, file)) // the topmost one has none; a container does not see its own by this path
			if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
				all = min(all, n)
			}
			if at == "/" {
				break
			}
		}
	}
	return all
}
