package cgroups

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LimitPids bounds the processes and threads of a group and all below it, and
// makes the group if it is not there.
func (h Host) LimitPids(path string, most int64) error {
	if err := checkPath(path); err != nil {
		return err
	}
	dir, ok := h.dir("pids", path)
	if !ok {
		return fmt.Errorf("bound processes of cgroup %s: no pids controller on this host", path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("bound processes of cgroup %s: %w", path, err)
	}
	if h.Mode == V2 { // each group on the way has to hand the controller on
		at := h.Mounts[""]
		for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			if err := os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte("+pids"), 0); err != nil {
				return fmt.Errorf("bound processes of cgroup %s: %w", path, err)
			}
			at = filepath.Join(at, part)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "pids.max"), fmt.Append(nil, most), 0); err != nil {
		return fmt.Errorf("bound processes of cgroup %s: %w", path, err)
	}
	return nil
}
