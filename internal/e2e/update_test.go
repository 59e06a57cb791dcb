package e2e

import (
	"strings"
	"testing"
)

// TestUpdate gives a running job other memory: the user hears what the node did.
func TestUpdate(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.submit(doc{command: sh("dd if=/dev/zero of=/dev/shm/f bs=1M count=60 2>/dev/null; echo ready; sleep 1000"), gb: 2})
	s.waitRunning(id)
	if r := s.run("gqueue", "update", id, "--mem", "1G"); r.code != 0 || !strings.Contains(r.out, "from 1 core and 2 GiB to 1 core and 1 GiB") {
		t.Errorf("less: %v", r)
	}
	if r := s.run("gqueue", "update", id, "--mem", "100000G"); r.code != 1 || !strings.Contains(r.err, "free") {
		t.Errorf("too much: %v", r)
	}
	if r := s.run("gqueue", "update", id, "--mem", "2"); r.code != 2 || !strings.Contains(r.err, "write 2G for GiB") {
		t.Errorf("two MiB: %v", r)
	}
	if out := s.must("gqueue", "-h", "-o", "%m", id); strings.TrimSpace(out) != "1G" {
		t.Errorf("it is shown with %q", out)
	}
	if r := s.run("gqueue", "update", id); r.code != 2 {
		t.Errorf("nothing: %v", r)
	}
	if d := s.job(id); d.Attempts[0].Ranks[0].MemBytes != 1<<30 {
		t.Errorf("it has %d bytes", d.Attempts[0].Ranks[0].MemBytes)
	}
	if show := s.must("gqueue", "show", id); !strings.Contains(show, "resized by root") || !strings.Contains(show, "has 1 core and 1 GiB on") {
		t.Errorf("the timeline is\n%s", show)
	}
	s.must("gcancel", id)
	s.wait(id)
	if r := s.run("gqueue", "update", id, "--mem", "1G"); r.code != 1 || !strings.Contains(r.err, "only a job that runs can be resized") {
		t.Errorf("after its end: %v", r)
	}
}
