package noded

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

// TestOrdering: of answers that overtake each other, only news count.
func TestOrdering(t *testing.T) {
	changed := func(v uint64) *api.SyncResponse { return &api.SyncResponse{Version: v, Changed: true} }
	type answer struct {
		ticket ticket
		resp   *api.SyncResponse
		want   bool
	}
	tests := map[string][]answer{
		"in-order":      {{ticket{}, changed(5), true}, {ticket{seen: 5}, changed(6), true}},
		"overtaken":     {{ticket{}, changed(6), true}, {ticket{}, changed(5), false}},
		"same-twice":    {{ticket{}, changed(5), true}, {ticket{}, changed(5), false}},
		"nothing-new":   {{ticket{}, changed(5), true}, {ticket{seen: 5}, &api.SyncResponse{Version: 5}, false}},
		"counts-anew":   {{ticket{}, changed(90), true}, {ticket{seen: 90}, changed(2), true}, {ticket{seen: 2, epoch: 1}, changed(3), true}},
		"late-and-anew": {{ticket{}, changed(90), true}, {ticket{seen: 90}, changed(2), true}, {ticket{seen: 90}, changed(1), false}},
	}
	for name, answers := range tests {
		t.Run(name, func(t *testing.T) {
			var o ordering
			for i, a := range answers {
				if got := o.accept(a.ticket, a.resp); got != a.want {
					t.Errorf("answer %d: accepted %t, want %t", i+1, got, a.want)
				}
			}
		})
	}
}

// TestContact: the lease counts from when an answered request was sent, and
// over restarts of the daemon, but not of the machine.
func TestContact(t *testing.T) {
	dir := t.TempDir()
	now := 90 * time.Second
	open := func(boot string) *contact {
		return openContact(dir, boot, time.Minute, func() time.Duration { return now })
	}
	c := open("boot1")
	if _, err := c.answered(95*time.Second, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	now = 110 * time.Second
	if left, silent := c.left(); left != 15*time.Second || silent != 15*time.Second {
		t.Errorf("left %s, silent %s", left, silent)
	}
	if _, err := c.answered(90*time.Second, 0); err != nil {
		t.Fatal(err)
	}
	if left, _ := c.left(); left != 15*time.Second {
		t.Errorf("an older answer moved the lease: left %s", left)
	}
	now = 130 * time.Second
	if left, _ := open("boot1").left(); left != -5*time.Second {
		t.Errorf("after a restart of the daemon: left %s", left)
	}
	c = open("boot2")
	if left, _ := c.left(); left != time.Minute {
		t.Errorf("after a restart of the machine: left %s", left)
	}
	if w := c.wait(); w != 20*time.Second {
		t.Errorf("polls wait %s", w)
	}
}

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
	// Root may write anywhere; a directory in the place of the file may not be
	// replaced by one.
	path := s.a.contact.path
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(path+"/x", 0o700); err != nil {
		t.Fatal(err)
	}
	until(t, "the node to say so", func() bool {
		s.nudge()
		list := s.unhealthy()
		return len(list) > 0 && strings.HasPrefix(list[0], "state directory "+s.cfg.StateDir+" cannot be written: ")
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
