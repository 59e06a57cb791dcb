package hostnet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gbatch/cgroups"
)

// Container filters what a container will do whose group is at a path, before
// it has any process. The runtime puts all of them into that group of the v2
// hierarchy too, on a host that has others beside it, and removes it.
func Container(group string) error {
	root, err := hierarchy()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, group)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("filter the node's network: %w", err)
	}
	return attach(dir)
}

// hierarchy is where cgroup v2 is mounted.
func hierarchy() (string, error) {
	host, err := cgroups.Detect()
	if err == nil && host.Mounts[""] == "" {
		err = errors.New("the machine has no cgroup v2 hierarchy; mount one: mount -t cgroup2 none /sys/fs/cgroup/unified")
	}
	if err != nil {
		return "", fmt.Errorf("filter the node's network: %w", err)
	}
	return host.Mounts[""], nil
}
