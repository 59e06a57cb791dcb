package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPrepull: while a job waits for a node that the plan gives it, the node
// pulls its image, here with a login; the timeline says so, and
// the job finds the image there when its turn comes.
func TestPrepull(t *testing.T) {
	s := newSite(t, siteOptions{})
	first := s.submit(doc{name: "first", cpus: 8, command: idle, scheduling: map[string]any{"maxDuration": "1 hour"}})
	s.waitRunning(first)
	second := s.submit(doc{name: "second", cpus: 8, image: login.Username + ":" + login.Password + "@" + private.host + "/secret/box:1", command: sh("echo ran")})
	want := "image is on " + s.nodeName(0) + " ahead of the start"
	eventually(t, "the image is pulled ahead", func() bool { return strings.Contains(s.must("gqueue", "show", second), want) })
	s.must("gcancel", first)
	d := s.wait(second)
	if diff := cmp.Diff(finished, endOf(d)); diff != "" {
		t.Errorf("its end (-want +got):\n%s", diff)
	}
	if out := s.must("glog", second); out != "ran\n" {
		t.Errorf("it wrote %q", out)
	}
	if show := s.must("gqueue", "show", second); strings.Contains(show, "GPUs waited") || strings.Contains(show, login.Password) {
		t.Errorf("its story is\n%s", show)
	}
}
