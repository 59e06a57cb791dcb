package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// freezing are the hierarchies by which processes are frozen.
var freezing = []string{"", "freezer"}

// Enter puts a process into the group, which it makes if it is not there, in the
// hierarchies by which processes are frozen: who freezes the group that the process was
// born in does not freeze it. What it counts for stays as it is.
func (g *Group) Enter(pid int) error {
	for _, name := range freezing {
		point, ok := g.host.Mounts[name]
		if !ok {
			continue
		}
		dir := filepath.Join(point, g.path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make cgroup %s: %w", g.path, err)
		}
		if err := move(dir, pid); err != nil {
			return fmt.Errorf("move process to cgroup %s: %w", g.path, err)
		}
	}
	return nil
}

// Leave takes a process out of a group that it has entered, into the root, as at its end, and
// removes the group, with the one above it, where nobody else is in them.
func (g *Group) Leave(pid int) {
	for _, name := range freezing {
		point, ok := g.host.Mounts[name]
		if !ok {
			continue
		}
		if err := move(point, pid); err != nil && !errors.Is(err, os.ErrNotExist) {
			continue // it stays; a later one finds the group
		}
		dir := filepath.Join(point, g.path)
		if above := filepath.Dir(dir); unix.Rmdir(dir) == nil && above != point {
			_ = unix.Rmdir(above)
		}
	}
}

func move(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}
