package noded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/identity"
)

// TestFence kills, or stops, the daemon and the container's shim together: neither
// can end the container, and it does not outlive its lease.
func TestFence(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			p := s.spawn(0)
			id := rankID(1)
			s.want(id, order(stubborn))
			s.ready(id)
			s.setLease(4000)
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

// TestFenceFrozen freezes the daemon with all that it began in its control group: the guard
// has a group of its own, and the container does not outlive its lease.
func TestFenceFrozen(t *testing.T) {
	host, err := cgroups.Detect()
	if err != nil {
		t.Fatal(err)
	}
	if host.Mode == cgroups.V2 {
		t.Skip("SKIPPED: with cgroup v2 alone the containers' groups are below the daemon's, and would be frozen too")
	}
	s := newSite(t, nil)
	s.leaseMS = 4000
	own, err := host.Find("/gbatch-test-" + s.cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Enter(os.Getpid()); err != nil { // what is begun now is born there
		t.Fatal(err)
	}
	p := s.spawn(0)
	own.Leave(os.Getpid())
	t.Cleanup(func() {
		if err := errors.Join(own.Freeze(false), own.Kill(time.Minute), own.Remove()); err != nil {
			t.Error(err)
		}
	})
	id := rankID(1)
	s.want(id, order(stubborn))
	s.ready(id)
	if err := own.Freeze(true); err != nil {
		t.Fatal(err)
	}
	at, err := identity.LookupHost(&s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	rank, err := host.Find(at.CgroupPath(id))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the container's processes to end", func() bool {
		// One that is dead stays until its parent, which is frozen, has looked.
		pids, err := rank.Pids()
		return err != nil || !slices.ContainsFunc(pids, lives)
	})
	if err := own.Freeze(false); err != nil {
		t.Fatal(err)
	}
	if e := s.exit(id); e.Reason != job.NodeFail {
		t.Errorf("exit %+v", e)
	}
	s.empty()
	p.term()
	if g, err := host.Find(at.GuardPath()); err != nil || g.Exists() {
		t.Errorf("the guard's group is left (%v)", err)
	}
}

// TestContactGoes: the file of a lease that is about nothing goes with its daemon, also
// with one that was killed.
func TestContactGoes(t *testing.T) {
	s := newSite(t, nil)
	file := filepath.Join(identity.ContactRun, s.cfg.Name)
	for _, end := range []func(*process){(*process).term, (*process).kill} {
		p := s.spawn(0)
		until(t, "contact to be noted", func() bool { _, err := os.Stat(file); return err == nil })
		end(p)
		until(t, "the file to go", func() bool { _, err := os.Stat(file); return errors.Is(err, fs.ErrNotExist) })
	}
}

// lives says whether a process does, and is not only waiting for its parent.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && !strings.HasPrefix(rest, "Z")
}

// TestRunsAlone: a rank that needs no lease outlives it, with the daemon and
// without; one beside it does not.
func TestRunsAlone(t *testing.T) {
	s := newSite(t, nil)
	s.leaseMS = 4000
	p := s.spawn(0)
	bound, alone := rankID(1), rankID(2)
	s.want(bound, order(stubborn))
	s.want(alone, order(patient, func(o *api.RunOrder) { o.Alone = true }))
	s.ready(bound)
	s.ready(alone)
	host, err := identity.LookupHost(&s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	lives := func(id job.RankID) bool {
		g, err := host.Cgroups.Find(host.CgroupPath(id))
		if err != nil {
			t.Fatal(err)
		}
		pids, err := g.Pids()
		return err == nil && len(pids) > 0
	}
	s.setDown(true)
	until(t, "the rank with a lease to end", func() bool { return !lives(bound) })
	p.kill()
	killed := time.Now()
	until(t, "the guard's time to come", func() bool { return time.Since(killed) > 3*time.Second })
	if !lives(alone) {
		t.Fatal("the rank without a lease was ended")
	}
	p = s.spawn(1)
	s.setDown(false)
	s.stop(alone, api.Stop{Signal: "TERM", GraceMS: 60_000, Reason: job.ByUser})
	if e := s.exit(alone); e.Code != 9 {
		t.Errorf("the rank without a lease: %+v", e)
	}
	if e := s.exit(bound); e.Reason != job.NodeFail {
		t.Errorf("the rank with a lease: %+v", e)
	}
	s.empty()
	p.term()
}

// TestNewWaitsForOld: a rank that is ordered together with the end of another, as
// by a controller that gave the node up meanwhile, waits for what that holds.
func TestNewWaitsForOld(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Cores = 1 }).start()
	old, fresh := rankID(1), rankID(2)
	s.want(old, order(`trap '' TERM; echo ready; while :; do sleep 0.05; done`, func(o *api.RunOrder) { o.GraceMS = 500 }))
	s.ready(old)
	s.mu.Lock()
	delete(s.desired, old)
	s.mu.Unlock()
	e, out := s.run(fresh, order("echo there is room"))
	if !e.OK() || out != "there is room\n" {
		t.Errorf("exit %+v, output %q", e, out)
	}
	s.empty()
}

// TestLimitWithoutDaemon: a time limit ends a rank while there is no daemon, one that needs
// no lease too: by its signal, and by a kill when that does not help.
func TestLimitWithoutDaemon(t *testing.T) {
	s := newSite(t, nil)
	p := s.spawn(0)
	obeys, ignores := rankID(1), rankID(2)
	// The shell must have set its handler by then, in a slow guest too.
	limit := func(o *api.RunOrder) { o.Alone, o.LimitMS, o.GraceMS = true, 15_000, 5000 }
	s.want(obeys, order(patient, limit))
	s.want(ignores, order(stubborn, limit))
	s.ready(obeys)
	s.ready(ignores)
	p.kill()
	host, err := identity.LookupHost(&s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the containers to end", func() bool {
		list, err := cgroups.Below(host.CgroupPrefix())
		return err == nil && len(list) == 0
	})
	p = s.spawn(1)
	if e := s.exit(obeys); e.Reason != job.MaxRuntime || e.Code != 9 || e.Message != "time limit of 15s reached" {
		t.Errorf("the rank that handles TERM: %+v", e)
	}
	if e := s.exit(ignores); e.Reason != job.MaxRuntime || e.Signal != int(syscall.SIGKILL) {
		t.Errorf("the rank that ignores TERM: %+v", e)
	}
	s.empty()
	p.term()
}
