package noded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/identity"
)

// TestDamagedRecords takes away or garbles the node's record of a rank, of one that runs and of
// one that has ended, while there is no daemon: each ends as the node's fault and not as its
// job's, the rank beside them goes on, and nothing of them is left.
func TestDamagedRecords(t *testing.T) {
	s := newSite(t, nil)
	p := s.spawn(0)
	damage := []func(path string) error{
		os.Remove,
		func(path string) error { return os.Truncate(path, 0) },
		func(path string) error { return os.Truncate(path, 40) },
		func(path string) error { return os.WriteFile(path, []byte("\x00\xff{garbled"), 0o600) },
	}
	whole := rankID(1)
	s.want(whole, order(patient))
	s.ready(whole)
	var running, ended []job.RankID
	for i := range damage {
		run, end := rankID(10+i), rankID(20+i)
		for _, id := range []job.RankID{run, end} {
			s.want(id, order(patient))
			s.ready(id)
		}
		running, ended = append(running, run), append(ended, end)
	}
	p.kill()
	host, err := identity.LookupHost(&s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ended {
		g, err := host.Cgroups.Find(host.CgroupPath(id))
		if err == nil {
			err = g.Kill(time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, do := range damage {
		for _, id := range []job.RankID{running[i], ended[i]} {
			if err := do(filepath.Join(s.cfg.StateDir, "ranks", id.String(), "rank.json")); err != nil {
				t.Fatal(err)
			}
		}
	}
	p = s.spawn(1)
	for _, id := range append(running, ended...) {
		if e := s.exit(id); e.Reason != job.NodeFail || !strings.Contains(e.Message, "record of the job was damaged") {
			t.Errorf("rank %s ended with %+v", id, e)
		}
	}
	s.stop(whole, api.Stop{Signal: "TERM", GraceMS: 60_000, Reason: job.ByUser})
	if e := s.exit(whole); e.Code != 9 {
		t.Errorf("the rank beside them: %+v", e)
	}
	s.empty()
	p.term()
}
