package noded

import (
	"syscall"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/noded/identity"
)

// TestFence kills, or stops, the daemon and the container's shim together: neither
// can end the container, and it does not outlive its lease.
func TestFence(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			s.leaseMS = 4000
			p := s.spawn(0)
			id := rankID(1)
			s.want(id, order(stubborn))
			s.ready(id)
			list := shims(s.cfg.StateDir)
			if len(list) == 0 {
				t.Fatal("no shim")
			}
			for _, pid := range append(list, p.cmd.Process.Pid) {
				if err := syscall.Kill(pid, sig); err != nil {
					t.Fatal(err)
				}
			}
			host, err := identity.LookupHost(&s.cfg)
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the container's processes to end", func() bool {
				g, err := host.Cgroups.Find(host.CgroupPath(id))
				if err != nil {
					t.Fatal(err)
				}
				pids, err := g.Pids()
				return err != nil || len(pids) == 0
			})
			for _, pid := range append(list, p.cmd.Process.Pid) {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
			if sig == syscall.SIGKILL {
				p.kill()
				p = s.spawn(1)
			}
			if e := s.exit(id); e.Reason != job.NodeFail {
				t.Errorf("exit %+v", e)
			}
			s.empty()
			p.term()
		})
	}
}
