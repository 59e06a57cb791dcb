package cgroups

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Group is a handle on one control group by its path; the group need not
// exist. It holds no resources but those of Keep, and is safe for concurrent use.
type Group struct {
	host Host
	path string
	kept *keptFiles // nil: each file is opened when it is read
}

// Find returns the handle of the group at path on this machine. The path must
// be absolute, clean and not the root.
func Find(path string) (*Group, error) {
	h, err := Detect()
	if err != nil {
		return nil, err
	}
	return h.Find(path)
}

// Find is like the function, on a host that was detected before.
func (h Host) Find(path string) (*Group, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	return &Group{host: h, path: path}, nil
}

func checkPath(path string) error {
	if path == "/" || !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("cgroup path %q must be absolute, clean and below the root", path)
	}
	return nil
}

// Path returns the path that the group was found by.
func (g *Group) Path() string { return g.path }

// Only is the group in the hierarchies of these controllers alone. A process that was
// not moved is in the same group of each hierarchy, so one is enough to list them.
func (g *Group) Only(controllers ...string) *Group {
	if g.host.Mode == V2 {
		return g
	}
	h := Host{Mode: g.host.Mode, Mounts: map[string]string{}}
	for _, c := range controllers {
		if point, ok := g.host.Mounts[c]; ok {
			h.Mounts[c] = point
		}
	}
	return &Group{host: h, path: g.path}
}

// dirs returns the group's directory in every hierarchy where it exists.
func (g *Group) dirs() []string {
	var out []string
	for _, point := range g.host.points() {
		dir := filepath.Join(point, g.path)
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			out = append(out, dir)
		}
	}
	return out
}

// Exists says whether any hierarchy still has the group.
func (g *Group) Exists() bool { return len(g.dirs()) > 0 }

// Pids returns the processes of the group and of the groups below it.
func (g *Group) Pids() ([]int, error) {
	seen := map[int]bool{}
	var out []int
	for _, dir := range g.dirs() {
		if err := walkPids(dir, seen, &out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func walkPids(dir string, seen map[int]bool, out *[]int) error {
	r := reader{group: &Group{}}
	data, err := r.read(filepath.Join(dir, "cgroup.procs"))
	if err != nil && !gone(err) {
		return err
	}
	for line := range bytes.Lines(data) {
		pid, err := strconv.Atoi(string(bytes.TrimSpace(line)))
		// 0 stands for a process outside our pid namespace.
		if err == nil && pid > 0 && !seen[pid] {
			seen[pid] = true
			*out = append(*out, pid)
		}
	}
	if err := walkBelow(dir, seen, out); !gone(err) {
		return err
	}
	return nil
}

// walkBelow is walkPids for the groups below one, of which most have none: the kernel counts them
// as links.
func walkBelow(dir string, seen map[int]bool, out *[]int) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Nlink == 2 {
		return os.NewSyscallError("stat", err)
	}
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if e.IsDir() {
			err = errors.Join(err, walkPids(filepath.Join(dir, e.Name()), seen, out))
		}
	}
	return err
}

func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// Kill ends every process of the group and of those below it, frozen ones too.
// It returns once none is left, or an error after the timeout.
func (g *Group) Kill(timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		pids, err := g.killOnce()
		if err != nil {
			return fmt.Errorf("kill cgroup %s: %w", g.path, err)
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill cgroup %s: processes %v do not end; they wait in the kernel, often for storage", g.path, pids)
		}
		time.Sleep(wait)
	}
}

// killOnce sends the signals and returns who was there to get them.
func (g *Group) killOnce() ([]int, error) {
	pids, err := g.Pids()
	if err != nil || len(pids) == 0 {
		return nil, err
	}
	for _, dir := range g.dirs() {
		// v2 kills the subtree as one, also what forks meanwhile.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return nil, fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return pids, g.thaw()
}

// Remove deletes the group, and the groups below it, from every hierarchy. A
// group that does not exist is no error; one with processes is.
func (g *Group) Remove() error {
	var errs []error
	for _, dir := range g.dirs() {
		errs = append(errs, removeTree(dir))
	}
	return errors.Join(errs...)
}

// removeTree removes dir and its subgroups, children first. The kernel answers
// EBUSY for a moment after the last process has ended, so it tries again.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove cgroup: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for try := 0; ; try++ {
		err := unix.Rmdir(dir)
		if err == nil || gone(err) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || try == 8 {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
		time.Sleep(time.Millisecond << try)
	}
}
