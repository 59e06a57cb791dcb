package noded

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/oci/result"
)

// wantAfter orders a rank that begins when another one has ended.
func (f *fakeController) wantAfter(id, after job.RankID, run *api.RunOrder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.desired[id] = api.Order{ID: id, Run: run, After: &after}
	f.version++
	f.touch()
}

// ownCores is a node whose ranks have cores of their own, and a directory in common.
func ownCores(dir string) func(*config.Config) {
	return func(c *config.Config) {
		c.Cores = runtime.NumCPU()
		c.Storage = []config.StorageRoot{{Name: "/shared", Path: dir}}
	}
}

// lasts is an order that ends when there is a file, and notes that it has begun.
func lasts(n int) *api.RunOrder {
	return order(fmt.Sprintf("echo begin >> /shared/%d; until [ -e /shared/go%d ]; do sleep 0.01; done; exit %d", n, n, n), func(o *api.RunOrder) {
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/shared", ContainerPath: "/shared"}}
	})
}

// letEnd lets ranks end.
func letEnd(t *testing.T, dir string, list ...int) {
	t.Helper()
	for _, n := range list {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("go", n)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func begins(dir string, n int) string {
	b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(n)))
	return string(b)
}

// TestMadeAhead: a rank that follows another one is made while that runs, has its cores when it has ended, and
// begins then; one that is taken back leaves nothing.
func TestMadeAhead(t *testing.T) {
	dir, made := shared(t), make(chan struct{}, 9)
	s := newSite(t, ownCores(dir))
	s.onReach = func(point string) {
		if point == "made" {
			made <- struct{}{}
		}
	}
	s.start()
	first, second, third := rankID(1), rankID(2), rankID(3)
	s.want(first, lasts(1))
	until(t, "the first to run", func() bool { return begins(dir, 1) != "" })
	s.wantAfter(second, first, lasts(2))
	<-made
	s.wantAfter(third, second, lasts(3))
	<-made
	for _, id := range []job.RankID{second, third} {
		if _, err := os.Stat(filepath.Join(s.cfg.StateDir, "ranks", id.String(), "box", result.FileBegun)); err == nil {
			t.Errorf("%s has begun while the first runs", id)
		}
		s.nudge()
		s.mu.Lock()
		phase := s.status[id].Phase
		s.mu.Unlock()
		if phase.After(node.PhaseAccepted) {
			t.Errorf("%s is said to be %s while it may be taken back", id, phase)
		}
	}
	s.stop(third, api.Stop{Signal: "KILL", Reason: job.ByUser, Text: "taken back", Ahead: true})
	if e := s.exit(third); e.StartedMS != 0 {
		t.Errorf("the one that is taken back ended with %+v", e)
	}
	if dirs := rankDirs(s); len(dirs) != 2 {
		t.Errorf("it left something: %v", dirs)
	}
	letEnd(t, dir, 2, 1)
	one, two := s.exit(first), s.exit(second)
	if one.Code != 1 || two.Code != 2 || two.StartedMS < one.EndedMS || begins(dir, 2) != "begin\n" || begins(dir, 3) != "" {
		t.Errorf("%+v, then %+v; wrote %q and %q", one, two, begins(dir, 2), begins(dir, 3))
	}
	s.mu.Lock()
	a, b := s.status[first].Cores, s.status[second].Cores
	s.mu.Unlock()
	if a == "" || a != b {
		t.Errorf("the first had the cores %q, the second %q", a, b)
	}
	s.empty()
	s.leavesNothing()
}

// TestMadeAheadAtOnce: ranks that are ordered together with the one that they follow, which has no cores yet, are made
// before their turn, too.
func TestMadeAheadAtOnce(t *testing.T) {
	dir, made := shared(t), new(atomic.Int32)
	s := newSite(t, ownCores(dir))
	s.onReach = func(point string) {
		if point == "made" {
			made.Add(1)
		}
	}
	s.want(rankID(1), lasts(1))
	for n := 2; n <= 3; n++ {
		s.wantAfter(rankID(n), rankID(n-1), lasts(n))
	}
	s.start()
	until(t, "both to be made", func() bool { return made.Load() == 2 })
	letEnd(t, dir, 3, 2, 1)
	for n := 1; n <= 3; n++ {
		if e := s.exit(rankID(n)); e.Code != n || begins(dir, n) != "begin\n" {
			t.Errorf("rank %d: %+v, wrote %q", n, e, begins(dir, n))
		}
	}
	s.empty()
	s.leavesNothing()
}

// TestKilledWhileMade: a rank that was made ahead by a daemon that dies is made again by the next one, and
// runs once, in its turn.
func TestKilledWhileMade(t *testing.T) {
	dir := shared(t)
	s := newSite(t, ownCores(dir))
	s.killAt = "made"
	p := s.spawn(0)
	first, second := rankID(1), rankID(2)
	s.want(first, lasts(1))
	until(t, "the first to run", func() bool { return begins(dir, 1) != "" })
	s.wantAfter(second, first, lasts(2))
	p.died()
	p = s.spawn(1)
	p.died() // it is made again
	s.killAt = ""
	p = s.spawn(2)
	letEnd(t, dir, 2, 1)
	one, two := s.exit(first), s.exit(second)
	if one.Code != 1 || two.Code != 2 || two.StartedMS < one.EndedMS || begins(dir, 1) != "begin\n" || begins(dir, 2) != "begin\n" {
		t.Errorf("%+v, then %+v; wrote %q and %q", one, two, begins(dir, 1), begins(dir, 2))
	}
	s.empty()
	s.leavesNothing()
	p.term()
}
