package cgroups

import (
	"strings"
	"testing"
)

// FuzzMountinfo: whatever is mounted where, the table is read or refused.
func FuzzMountinfo(f *testing.F) {
	f.Add("25 1 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n26 1 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
	f.Add("1 2 3 - cgroup")
	f.Add(" -  - \n")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseMountinfo(strings.NewReader(s))
		if err != nil {
			return
		}
		for controller, point := range h.Mounts {
			if point == "" || !strings.Contains(s, point) || controller != "" && !strings.Contains(s, controller) {
				t.Errorf("%q is mounted on %q", controller, point)
			}
		}
		h.points()
	})
}
