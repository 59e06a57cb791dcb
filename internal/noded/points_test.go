package noded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/identity"
	"gbatch/internal/noded/record"
	"gbatch/oci/netns"
)

// killEnv names the point at which a daemon kills itself.
const killEnv = "GBATCH_TEST_KILL_AT"

func killAt(point string) func(string) {
	if point == "" {
		return nil
	}
	return func(at string) {
		if at == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// points are all places between two steps of a rank's life, as a rank passes
// them.
func points(t *testing.T) []string {
	var mu sync.Mutex
	var list []string
	s := newSite(t, nil)
	s.onReach = func(point string) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, point)
	}
	s.start()
	s.run(rankID(1), order("true"))
	s.holdsNothing()
	s.halt()
	if len(list) < 10 || list[0] != "swept" || list[len(list)-1] != "forgotten" {
		t.Fatalf("a rank passes %q", list)
	}
	return list[1:]
}

// TestKilledBetweenSteps kills the daemon once between every two steps of a
// job, and the next one once more while it recovers. The job runs exactly
// once, its end is told, and nothing of it stays on the machine.
func TestKilledBetweenSteps(t *testing.T) {
	for i, point := range points(t) {
		t.Run(strings.ReplaceAll(point, " ", "-"), func(t *testing.T) { killOnceAt(t, i+1, point) })
	}
}

func killOnceAt(t *testing.T, n int, point string) {
	witness := shared(t)
	s := newSite(t, func(c *config.Config) { c.Storage = []config.StorageRoot{{Name: "/witness", Path: witness}} })
	s.killAt = point
	p := s.spawn(0)
	id := rankID(n)
	s.want(id, witnessOrder(100))
	if point == "let go" || point == "forgotten" {
		s.exit(id)
		s.drop(id)
	}
	p.died()
	for i, at := range []string{"adopted", "swept", ""} {
		s.killAt = at
		p = s.spawn(i + 1)
		if at == "swept" || (at == "adopted" && len(rankDirs(s)) > 0) {
			p.died()
		} else if at != "" {
			p.kill() // there is nothing to adopt
		}
	}
	if e := s.exit(id); e.Code != n {
		t.Errorf("it ended with %+v", e)
	}
	wrote, _ := os.ReadFile(filepath.Join(witness, fmt.Sprint(n)))
	if want := fmt.Sprintf("begin %d\nend %d\n", n, n); string(wrote) != want {
		t.Errorf("it wrote %q, want %q", wrote, want)
	}
	s.empty()
	s.leavesNothing()
	p.term()
	if t.Failed() {
		t.Log(p.text())
	}
}

// TestKilledWhileStopping: the stop goes on, and its reason is not forgotten.
func TestKilledWhileStopping(t *testing.T) {
	s := newSite(t, nil)
	s.killAt = "stop noted"
	p := s.spawn(0)
	id := rankID(1)
	s.want(id, order(stubborn))
	s.ready(id)
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 200, Reason: job.ByUser, Text: "cancelled by alice"})
	p.died()
	s.killAt = ""
	p = s.spawn(1)
	if e := s.exit(id); e.Reason != job.ByUser || e.Signal != 9 || e.Message != "cancelled by alice" {
		t.Errorf("it ended with %+v", e)
	}
	s.empty()
	s.leavesNothing()
	p.term()
}

// died waits until the daemon has killed itself.
func (p *process) died() {
	p.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	if !timer.Stop() {
		p.t.Fatalf("the daemon did not come to the point at which it is killed:\n%s", p.text())
	}
	if st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGKILL {
		p.t.Fatalf("the daemon ended otherwise: %v\n%s", err, p.text())
	}
}

// rankDirs are the ranks that the node has on its disk and whose end was not
// yet let go of.
func rankDirs(s *site) []string {
	all, _ := filepath.Glob(filepath.Join(s.cfg.StateDir, "ranks", "*"))
	var list []string
	for _, dir := range all {
		if !record.IsReleased(dir) {
			list = append(list, dir)
		}
	}
	return list
}

// leavesNothing looks for what a node that holds no rank must not have: mounts,
// cgroups, processes, network interfaces, and directories other than kept logs.
func (s *site) leavesNothing() {
	s.t.Helper()
	if dirs := rankDirs(s); len(dirs) > 0 {
		s.t.Errorf("directories: %v", dirs)
	}
	for _, sub := range []string{"upper", "work", "rootfs", "state", "sock", "../mounts/*"} {
		if left, _ := filepath.Glob(filepath.Join(s.cfg.StateDir, "ranks", "*", "box", sub)); len(left) > 0 {
			s.t.Errorf("a container's own files: %v", left)
		}
	}
	for m := range hostMounts() {
		if strings.HasPrefix(m, s.cfg.StateDir) && !strings.Contains(m, "/disk/.slot-") { // which wait for others
			s.t.Errorf("mount %s", m)
		}
	}
	base, err := identity.LookupHost(&s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	if gone, err := cgroups.Sweep(base.CgroupPrefix(), func(string) bool { return false }); err != nil || len(gone) > 0 {
		s.t.Errorf("cgroups without a rank: %v %v", gone, err)
	}
	until(s.t, "end of all networks of ranks", func() bool { // they are taken away together
		for name, mark := range linksMarked(s.t, "") {
			if strings.HasPrefix(name, netns.Interfaces(s.cfg.Name)) && !strings.HasPrefix(mark, "ahead-") { // which is no rank's, and goes with the daemon
				return false
			}
		}
		return true
	})
	until(s.t, "end of all shims", func() bool { return len(shims(s.cfg.StateDir)) == 0 })
}
