package noded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/node"
)

// TestFullDisk: a node that has no room says so and keeps what runs.
func TestFullDisk(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	s.a.health.mu.Lock()
	s.a.health.minFree = 1 << 60
	s.a.health.mu.Unlock()
	s.want(rankID(2), order("true")) // for a sync
	s.exit(rankID(2))
	s.await("the node to say so", func() bool {
		return len(s.last.Unhealthy) > 0 && strings.HasPrefix(s.last.Unhealthy[0], "disk full: ")
	})
	if p := s.phase(id, node.PhaseRunning).Phase; p != node.PhaseRunning {
		t.Errorf("the running rank is %s", p)
	}
	s.empty()
}

// TestReadOnlyState: a state directory that takes no writes makes the node
// unhealthy, new ranks fail as the node's fault, and it recovers.
func TestReadOnlyState(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	// Root may write anywhere, but not to a directory.
	path := filepath.Join(s.cfg.StateDir, fileTried+".tmp")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	until(t, "the node to say so", func() bool {
		s.nudge()
		list := s.unhealthy()
		return len(list) > 0 && strings.HasPrefix(list[0], "the node's state directory cannot be written: ")
	})
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	until(t, "the node to be well again", func() bool {
		s.nudge()
		return len(s.unhealthy()) == 0
	})
	if diff := cmp.Diff(node.PhaseRunning, s.phase(id, node.PhaseRunning).Phase); diff != "" {
		t.Errorf("the running rank (-want +got):\n%s", diff)
	}
	s.empty()
}
