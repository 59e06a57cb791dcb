// Command guest runs containers on a machine that has cgroup v2 alone and
// prints what held. It is started by the init script of the virtual machine
// that its parent directory's test boots, with all of that machine for itself,
// and makes its containers the way a node daemon does: below the group that
// systemd would have delegated to it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gbatch/cgroups"
	"gbatch/internal/vmtest"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	unit       = "/system.slice/gnoded.service"
	attempts   = "/var/attempts" // the containers' directories
)

// prefix is the group that all containers are below.
const prefix = unit + "/gbatch"

func main() {
	if len(os.Args) == 3 && os.Args[1] == "start" {
		if err := startAndLeave(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	r := vmtest.NewReport(os.Stdout)
	r.Check("delegation", settle)
	checkInside(r)
	checkOOM(r)
	checkLive(r)
	checkSweep(r)
	if !r.End() {
		os.Exit(1)
	}
}

// settle does systemd's part, moves into the delegated group and has Base make
// room for containers.
func settle() error {
	const enable = "+cpu +cpuset +memory +pids"
	if err := os.MkdirAll(cgroupRoot+unit, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{"/", "/system.slice"} {
		if err := os.WriteFile(filepath.Join(cgroupRoot, dir, "cgroup.subtree_control"), []byte(enable), 0); err != nil {
			return err
		}
	}
	if err := os.WriteFile(cgroupRoot+unit+"/cgroup.procs", []byte(fmt.Sprint(os.Getpid())), 0); err != nil {
		return err
	}
	host, err := cgroups.Detect()
	if err != nil {
		return err
	}
	if host.Mode != cgroups.V2 {
		return fmt.Errorf("mode %s", host.Mode)
	}
	base, err := cgroups.Base("daemon")
	if err != nil {
		return err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	if base != unit || strings.TrimSpace(string(own)) != "0::"+unit+"/daemon" {
		return fmt.Errorf("base %s, own group %s", base, own)
	}
	if problems := cgroups.Check(base); len(problems) > 0 {
		return fmt.Errorf("problems: %+v", problems)
	}
	return nil
}
