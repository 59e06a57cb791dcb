package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/job"
)

// TestReboot has a node emptied and rebooted: who runs there is told and goes on
// afterwards, the site's program runs once, and the node takes jobs again by itself. The
// program ends the daemon, as a boot does; the next one finds another boot.
func TestReboot(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick, nodeConfig: "reboot: {path: DIR/reboot}\n", ready: func(s *site) {
		script := fmt.Sprintf("#!/bin/sh\necho $GBATCH_NODE >> %s/reboots\nkill -KILL $PPID\n", s.dir)
		if err := os.WriteFile(s.dir+"/reboot", []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}})
	id := s.submit(doc{name: "moves", command: sh("trap 'exit 0' TERM; while :; do sleep 0.1; done"), scheduling: map[string]any{"restartable": true}})
	s.waitRunning(id)
	node := s.nodes[0]
	out := s.must("gadm", "drain", node.name, "-r", "kernel", "--evict", "--reboot")
	if !strings.Contains(out, "job "+id+" (moves) of root is being halted") {
		t.Errorf("gadm drain does not say who has to leave:\n%s", out)
	}
	eventually(t, "the machine is rebooted", func() bool { return !node.running() })
	_ = node.stop() // takes in the end
	if got, want := lines(t, filepath.Join(s.dir, "reboots")), node.name; len(got) != 1 || got[0] != want {
		t.Errorf("reboots: %q, want one of %s", got, want)
	}
	if out := s.must("ginfo", node.name); !strings.Contains(out, "rebooting") || !strings.Contains(out, "kernel") {
		t.Errorf("a node that is being rebooted:\n%s", out)
	}
	next := s.job(id).Successor
	if d := s.job(fmt.Sprint(next)); d.State != job.Queued {
		t.Errorf("what had to leave does not wait to go on:\n%s", describe(d))
	}
	s.must("gcancel", fmt.Sprint(next)) // below what stands for another boot no container begins
	boot := filepath.Join(s.dir, "boot_id")
	if err := os.WriteFile(boot, []byte("00000000-0000-4000-8000-000000000001\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	node.boot = boot
	node.start()
	s.waitNodes("up", 1)
	if got := lines(t, filepath.Join(s.dir, "reboots")); len(got) != 1 {
		t.Errorf("it was rebooted again: %q", got)
	}
	if out := s.must("ginfo", node.name); !strings.Contains(out, "back after its reboot, and its checks have passed") {
		t.Errorf("a node that was rebooted:\n%s", out)
	}
}
