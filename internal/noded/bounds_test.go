package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// TestDefaultBounds: without any configuration a job has far fewer processes than
// the machine, and all jobs together leave it some.
func TestDefaultBounds(t *testing.T) {
	s := newSite(t, nil).start()
	most := config.MaxProcesses()
	if s.cfg.PidsMax > most/8 && s.cfg.PidsMax > 1024 {
		t.Errorf("a job may have %d processes, of the machine's %d", s.cfg.PidsMax, most)
	}
	dir := filepath.Join(s.a.host.Cgroups.Mounts["pids"], s.a.host.CgroupPrefix())
	if s.a.host.Cgroups.Mode == cgroups.V2 {
		dir = filepath.Join(s.a.host.Cgroups.Mounts[""], s.a.host.CgroupPrefix())
	}
	if b, err := os.ReadFile(filepath.Join(dir, "pids.max")); err != nil || strings.TrimSpace(string(b)) != strconv.Itoa(most*3/4) {
		t.Errorf("all jobs together may have %q processes (%v), of %d", b, err, most)
	}
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	if b, err := os.ReadFile(filepath.Join(dir, id.String(), "pids.max")); err != nil || strings.TrimSpace(string(b)) != strconv.Itoa(s.cfg.PidsMax) {
		t.Errorf("the job may have %q processes (%v), want %d", b, err, s.cfg.PidsMax)
	}
	s.empty()
}

// TestMemoryHoldsTmpfs: what a job puts into /dev/shm and its tmpfs counts as its
// memory, files without content too, and ends it alone.
func TestMemoryHoldsTmpfs(t *testing.T) {
	s := newSite(t, nil).start()
	tmpfs := func(o *api.RunOrder) {
		o.Allocation.MemBytes = 64 << 20
		o.Spec.Gbatch = &job.Gbatch{ShmSizeMB: 4096}
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: job.TmpfsHostPath, ContainerPath: "/mem", SizeGB: 4}}
	}
	for i, line := range []string{
		"dd if=/dev/zero of=/dev/shm/x bs=1M count=1000",
		"dd if=/dev/zero of=/mem/x bs=1M count=1000",
		"cd /mem; i=0; while [ $i -lt 200000 ]; do true > $i; i=$((i+1)); done",
	} {
		e, _ := s.run(rankID(i+1), order(line, tmpfs))
		if e.Reason != job.OOM {
			t.Errorf("%s: ended as %s %q", line, e.Reason, e.Message)
		}
	}
	if list := s.unhealthy(); len(list) > 0 {
		t.Errorf("the node is unhealthy: %q", list)
	}
	s.empty()
}

// TestDiskRates: the site's bounds on what a container moves from and to disks
// are in force in its control group, and a node that cannot keep them says so.
func TestDiskRates(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Disk.WriteRate, c.Disk.ReadOps = 8<<20, 500 })
	major, minor, err := cgroups.Disk(filepath.Dir(filepath.Dir(s.cfg.StateDir)))
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	s.start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	group := s.a.host.CgroupPath(id)
	read := func(file string) string {
		b, err := os.ReadFile(filepath.Join(s.a.host.Cgroups.Mounts["blkio"], group, file))
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(b))
	}
	if s.a.host.Cgroups.Mode == cgroups.V2 {
		b, err := os.ReadFile(filepath.Join(s.a.host.Cgroups.Mounts[""], group, "io.max"))
		if want := fmt.Sprintf("%d:%d rbps=max wbps=%d riops=500 wiops=max\n", major, minor, 8<<20); err != nil || string(b) != want {
			t.Errorf("io.max is %q (%v), want %q", b, err, want)
		}
	} else {
		if got, want := read("blkio.throttle.write_bps_device"), fmt.Sprintf("%d:%d %d", major, minor, 8<<20); got != want {
			t.Errorf("writes are bounded by %q, want %q", got, want)
		}
		if got, want := read("blkio.throttle.read_iops_device"), fmt.Sprintf("%d:%d 500", major, minor); got != want {
			t.Errorf("reads are bounded by %q, want %q", got, want)
		}
	}
	s.empty()
	s.halt()

	bad := s.cfg
	bad.StateDir, bad.Name = "/dev/shm/"+s.cfg.Name, s.cfg.Name+"x"
	defer os.RemoveAll(bad.StateDir)
	if a, err := Open(bad, Options{Log: testLog(t)}); err == nil || !strings.Contains(err.Error(), "disk.readRate and the like cannot be kept: find the disk of "+bad.StateDir) {
		t.Errorf("on a file system without a disk: %v", err)
		if a != nil {
			t.Error(errors.Join(a.Close()))
		}
	}
}
