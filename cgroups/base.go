package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Base returns the group below which this process may make groups, "/" on v1.
//
// On v2 that is the process's own group, as systemd delegates it; but a group
// that limits its children must not have processes itself. So the process, and
// what it forks from then on, moves into the subgroup sub first. Call it once,
// before starting anything.
func Base(sub string) (string, error) {
	h, err := Detect()
	if err != nil {
		return "", err
	}
	if h.Mode != V2 {
		return "/", nil
	}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find own cgroup: %w", err)
	}
	return baseIn(h.Mounts[""], string(data), sub)
}

// baseIn does Base's work on a v2 hierarchy mounted at root, for a process
// whose /proc/self/cgroup is self.
func baseIn(root, self, sub string) (string, error) {
	var own string
	for line := range strings.Lines(self) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = p
		}
	}
	switch {
	case own == "":
		return "", errors.New("find own cgroup: /proc/self/cgroup has no v2 line")
	case own == "/":
		return "/", nil // the root group alone may have processes and children
	case path.Base(own) == sub:
		return path.Dir(own), nil // moved before, by an earlier call or by systemd
	}
	dir := filepath.Join(root, own, sub)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make cgroup for the daemon itself: %w; set Delegate=yes in its systemd unit", err)
	}
	pid := strconv.Itoa(os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(pid), 0o644); err != nil {
		return "", fmt.Errorf("move to cgroup %s: %w", dir, err)
	}
	return own, nil
}
