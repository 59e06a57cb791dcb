package cgroups

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Start starts a command in the group, which it makes if it is not there. Where
// there is a v2 hierarchy the process is born in the group, so that nothing of it
// can be outside. With v1 hierarchies alone it is moved there when it has begun.
//
// The group is made in one hierarchy, and limits nothing: it is for finding and
// ending what the command starts.
func (g *Group) Start(cmd *exec.Cmd) error {
	point, unified := g.host.Mounts[""]
	if !unified {
		point = g.host.points()[0]
	}
	dir := filepath.Join(point, g.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make cgroup %s: %w", g.path, err)
	}
	if !unified {
		if err := cmd.Start(); err != nil {
			return err
		}
		err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0)
		if err != nil {
			return errors.Join(fmt.Errorf("move process to cgroup %s: %w", g.path, err), cmd.Process.Kill(), cmd.Wait())
		}
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open cgroup %s: %w", g.path, err)
	}
	defer d.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(d.Fd())
	return cmd.Start()
}
