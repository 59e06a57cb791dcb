package noded

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// resize orders other CPU and memory, as the controller does until it is answered.
func (f *fakeController) resize(id job.RankID, q *api.Resize) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.desired[id]
	o.Resize = q
	f.desired[id] = o
	f.version++
	f.touch()
}

// resized waits for the answer to an order.
func (s *site) resized(id job.RankID, q api.Resize) node.Resized {
	s.t.Helper()
	s.resize(id, &q)
	return s.answered(id, q.Seq)
}

func (s *site) answered(id job.RankID, seq uint64) (out node.Resized) {
	s.t.Helper()
	until(s.t, "an answer to the resize", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		r := s.status[id].Resize
		if r == nil || r.Seq != seq {
			return false
		}
		out = *r
		return true
	})
	s.resize(id, nil)
	return out
}

// limitsOf reads what the kernel allows a rank: cores and bytes of memory.
func (s *site) limitsOf(name string) (cores string, mem int64) {
	s.t.Helper()
	read := func(paths ...string) string {
		for _, p := range paths {
			if b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", p)); err == nil {
				return strings.TrimSpace(string(b))
			}
		}
		s.t.Fatalf("none of %q can be read", paths)
		return ""
	}
	mem, err := strconv.ParseInt(read("memory"+name+"/memory.limit_in_bytes", name+"/memory.max"), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return read("cpuset"+name+"/cpuset.cpus", name+"/cpuset.cpus"), mem
}

// TestResize: a running rank gets more and less cores and memory, keeps them
// over restarts of the daemon, frees for others what it has left, and is
// refused what would kill it, after which all is as it was.
func TestResize(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Reserve.Cores, c.Cores = 0, 0 }).start()
	if s.a.cores.Offered < 2 {
		t.Skip("SKIPPED, needs two cores")
	}
	id := rankID(1)
	s.want(id, order("dd if=/dev/zero of=/dev/shm/f bs=1M count=40 2>/dev/null; echo ready; trap 'exit 0' TERM; while :; do sleep 0.05; done"))
	s.ready(id)
	path := s.a.host.CgroupPath(id)
	check := func(when, cores string, mib int64) {
		t.Helper()
		if c, m := s.limitsOf(path); c != cores || m != mib<<20 {
			t.Errorf("%s: cores %s and %d MiB, want %s and %d", when, c, m>>20, cores, mib)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if told := s.status[id].Cores; told != cores {
			t.Errorf("%s: told cores %s, want %s", when, told, cores)
		}
	}
	one, _ := s.limitsOf(path)
	if a := s.resized(id, api.Resize{Seq: 7, CPUs: 2, MemBytes: 512 << 20}); a.Error != "" {
		t.Fatalf("grow: %+v", a)
	}
	check("grown", "0-1", 512)
	s.halt()
	s.start()
	s.phase(id, node.PhaseRunning)
	check("after a restart", "0-1", 512)
	a := s.resized(id, api.Resize{Seq: 8, CPUs: 1, MemBytes: 32 << 20})
	if !strings.Contains(a.Error, "of memory that cannot be taken away, more than 32 MiB") {
		t.Errorf("less than it uses: %+v", a)
	}
	check("refused", "0-1", 512)
	if a := s.resized(id, api.Resize{Seq: 9, CPUs: 3, MemBytes: 512 << 20}); s.a.cores.Offered == 2 && !strings.Contains(a.Error, "choose cores") {
		t.Errorf("more cores than there are: %+v", a)
	}
	if s.a.cores.Offered == 2 {
		check("no cores", "0-1", 512)
	}
	if a := s.resized(id, api.Resize{Seq: 10, CPUs: 1, MemBytes: 128 << 20}); a.Error != "" {
		t.Fatalf("shrink: %+v", a)
	}
	left, _ := s.limitsOf(path)
	check("shrunk", left, 128)
	if len(left) != len(one) {
		t.Errorf("shrunk to cores %s", left)
	}
	s.halt()
	s.start()
	s.phase(id, node.PhaseRunning)
	if e, out := s.run(rankID(2), order("grep Cpus_allowed_list /proc/self/status")); e.Code != 0 || strings.Contains(out, "\t"+left+"\n") {
		t.Errorf("the next rank got %+v, %q; %s is taken", e, out, left)
	}
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 20_000})
	if e := s.exit(id); e.Code != 0 {
		t.Errorf("exit %+v", e)
	}
	s.empty()
}

// TestResizeKilled: a daemon that dies in the middle of a resize leaves one that
// its successor carries out.
func TestResizeKilled(t *testing.T) {
	for i, point := range []string{"resize noted", "resized"} {
		t.Run(strings.ReplaceAll(point, " ", "-"), func(t *testing.T) {
			s := newSite(t, nil)
			s.killAt = point
			p := s.spawn(0)
			id := rankID(i + 1)
			s.want(id, order("echo ready; sleep 1000"))
			s.phase(id, node.PhaseRunning)
			s.resize(id, &api.Resize{Seq: 5, CPUs: 1, MemBytes: 96 << 20})
			p.died()
			s.killAt = ""
			p = s.spawn(1)
			if a := s.answered(id, 5); a.Error != "" {
				t.Errorf("answer %+v", a)
			}
			p.kill()
			s.start()
			if _, m := s.limitsOf(s.a.host.CgroupPath(id)); m != 96<<20 {
				t.Errorf("%d MiB, want 96", m>>20)
			}
			var rec struct{ Order api.RunOrder }
			if readJSON(t, filepath.Join(s.a.node.Dir(id), "rank.json"), &rec); rec.Order.Allocation.MemBytes != 96<<20 {
				t.Errorf("recorded %+v", rec.Order.Allocation)
			}
			s.empty()
		})
	}
}
