package vmtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gbatch/cgroups"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	unit       = "/system.slice/gnoded.service"
)

// prefix returns the group that all containers are below: on v2, that is
// within what systemd delegates to the daemon.
func prefix() string {
	if mode == cgroups.V2 {
		return unit + "/gbatch"
	}
	return "/gbatch"
}

// enterGroup makes the machine ready as systemd and a daemon's start do.
func enterGroup() error {
	host, err := cgroups.Detect()
	if err != nil {
		return err
	}
	if host.Mode != mode {
		return fmt.Errorf("mode %s", host.Mode)
	}
	want := "/"
	if mode == cgroups.V2 {
		if err := delegate(); err != nil {
			return err
		}
		want = unit
	}
	base, err := cgroups.Base("daemon")
	if err != nil {
		return err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	if base != want || mode == cgroups.V2 && strings.TrimSpace(string(own)) != "0::"+unit+"/daemon" {
		return fmt.Errorf("base %s, own group %s", base, own)
	}
	if problems := cgroups.Check(base); len(problems) > 0 {
		return fmt.Errorf("problems: %+v", problems)
	}
	return nil
}

// delegate does what systemd does for a unit with Delegate=yes.
func delegate() error {
	if err := os.MkdirAll(cgroupRoot+unit, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{"/", "/system.slice"} {
		file := filepath.Join(cgroupRoot, dir, "cgroup.subtree_control")
		if err := os.WriteFile(file, []byte("+cpu +cpuset +memory +pids"), 0); err != nil {
			return err
		}
	}
	return os.WriteFile(cgroupRoot+unit+"/cgroup.procs", fmt.Append(nil, os.Getpid()), 0)
}

// kernel returns a file of the container's own group, by its name in each
// version.
func (b *box) kernel(v1, v2 string) string {
	name := filepath.Join(cgroupRoot, b.req.CgroupPath, v2)
	if mode == cgroups.V1 {
		controller, _, _ := strings.Cut(v1, ".")
		name = filepath.Join(cgroupRoot, controller, b.req.CgroupPath, v1)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}

// eventsBelow returns how many processes the memory limits in and below a
// group have killed. Only v2 counts them upwards.
func eventsBelow(path string) (n uint64) {
	data, _ := os.ReadFile(filepath.Join(cgroupRoot, path, "memory.events"))
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "oom_kill "); ok {
			fmt.Sscan(text, &n)
		}
	}
	return n
}

// gone says what is left of a container on the machine.
func gone(b *box) error {
	g, err := cgroups.Find(b.req.CgroupPath)
	if err != nil {
		return err
	}
	if pids, _ := g.Pids(); g.Exists() {
		return fmt.Errorf("group %s exists, with processes %v", g.Path(), pids)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if strings.Contains(string(mounts), b.dir) {
		return fmt.Errorf("mounts are left:\n%s", mounts)
	}
	return nil
}

// nothingLeft looks for directories and groups of any container.
func nothingLeft() error {
	left, err := os.ReadDir(attempts)
	if err != nil || len(left) > 0 {
		return fmt.Errorf("directories %v, %v", left, err)
	}
	var groups []string
	err = filepath.WalkDir(cgroupRoot, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(p, "/gbatch/") {
			groups = append(groups, p)
		}
		return err
	})
	if err != nil || len(groups) > 0 {
		return fmt.Errorf("groups %v, %v", groups, err)
	}
	return nil
}
