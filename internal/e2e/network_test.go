package e2e

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"gbatch/internal/job"
)

func ask(address string) string {
	c, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// TestPorts maps a port, finds it by gqueue show, and asks there while the
// daemons are killed; a second job that wants the same port is told who has it.
func TestPorts(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick})
	serve := sh("while :; do echo hello from $(hostname) | nc -l -p 8888; done")
	first := s.submit(doc{command: serve, ports: []any{8888}})
	var port string
	eventually(t, "gqueue show tells the port", func() bool {
		m := regexp.MustCompile(`Ports +8888 -> \S+:(\d+)\n`).FindStringSubmatch(s.must("gqueue", "show", first))
		if m != nil {
			port = m[1]
		}
		return m != nil
	})
	want := "hello from job-" + first
	answers := func() {
		t.Helper()
		eventually(t, "an answer at the port", func() bool { return ask("127.0.0.1:"+port) == want })
	}
	answers()
	s.nodes[0].kill()
	s.ctld.kill()
	answers()
	s.ctld.start()
	s.nodes[0].start()
	s.waitNodes("up", 1)
	answers()

	second := s.submit(doc{command: serve, ports: []any{map[string]any{"containerPort": 1, "hostPort": atoi(t, port)}}})
	d := s.wait(second)
	if text := fmt.Sprintf("port %s of node %s is in use by job %s", port, s.nodeName(0), first); d.State != job.Failed || d.Reason != "PORT_IN_USE" || d.ReasonText != text {
		t.Errorf("second job: %s %s %q; want %q", d.State, d.Reason, d.ReasonText, text)
	}
	s.must("gcancel", first)
	s.wait(first)
	third := s.submit(doc{command: []string{"true"}, ports: []any{map[string]any{"containerPort": 1, "hostPort": atoi(t, port)}}})
	if d := s.wait(third); d.State != job.Finished {
		t.Errorf("third job: %s %s %s", d.State, d.Reason, d.ReasonText)
	}
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
