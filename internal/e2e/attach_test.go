package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestAttach: gsubmit --interactive gives its terminal to the job; who
// leaves ends nothing and may come back, also after the node's daemon was
// restarted; the job's end is the command's; the log has what was shown.
func TestAttach(t *testing.T) {
	s := newSite(t, siteOptions{})
	file := s.write(doc{name: "shell", command: []string{"sh", "-i"}}.json())
	tm := s.program("gsubmit", 40, 100, "--interactive", file)
	before := tm.before
	tm.shows(`submitted job 1`)
	tm.shows(`# `)
	tm.types("tty; stty size; echo $((6*7))\n")
	tm.shows(`/dev/pts/0`)
	tm.shows(`40 100`)
	tm.shows(`\n42`)
	tm.types("sleep 1000\n")
	s.inJob("sleep 1000")
	tm.types("\x03") // for what runs there, not for gsubmit
	tm.types("echo st''ill ~.\n")
	tm.shows(`\nstill ~\.`)
	tm.types("~.")
	if code := tm.code(); code != 0 {
		t.Errorf("leaving ended gsubmit with %d: %s", code, tm.out)
	}
	tm.shows("gexec --attach 1")
	if tm.state() != before {
		t.Error("the terminal was not put back")
	}
	if r := s.run("gexec", "--attach", "1", "--", "true"); r.code != 125 || !strings.Contains(r.err, "takes --rank alone") {
		t.Errorf("gexec --attach with a command: %v", r)
	}
	s.nodes[0].kill()
	s.nodes[0].cmd = nil
	s.nodes[0].start()
	s.waitNodes("up", 1)
	// The next daemon takes the job over before it says that it runs.
	eventually(t, "the job can be entered again", func() bool { return s.run("gexec", "1", "--", "true").code == 0 })
	tm = s.program("gexec", 26, 81, "--attach", "1")
	tm.shows(`still`)
	tm.types("stty size; exit 6\n")
	tm.shows(`26 81`)
	if code := tm.code(); code != 6 || tm.state() != before {
		t.Errorf("the job's exit code 6 became %d", code)
	}
	if diff := cmp.Diff(ended{job.Failed, job.ExitCode, 6}, endOf(s.wait("1"))); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	if log := s.must("glog", "1"); !strings.Contains(log, "\r\n42\r\n") || !strings.Contains(log, "26 81") {
		t.Errorf("the log is %q", log)
	}
	if r := s.run("gexec", "--attach", "1"); r.code != 125 || !strings.Contains(r.err, "it can be entered only while it runs") {
		t.Errorf("attach to an ended job: %v", r)
	}
}

// TestAttachPipe: without a terminal here, input ends as it does there; a
// job that ends at once is shown whole; one that has no room fails.
func TestAttachPipe(t *testing.T) {
	s := newSite(t, siteOptions{})
	shell := s.write(doc{name: "shell", command: []string{"sh"}}.json())
	if r := s.runInput("echo $((1+1))x\nexit 3\n", "gsubmit", "--interactive", shell); r.code != 3 || !strings.Contains(r.out, "2x\r\n") {
		t.Errorf("piped: %v", r)
	}
	if r := s.runInput("", "gsubmit", "--interactive", shell); r.code != 0 {
		t.Errorf("no input: %v", r)
	}
	if r := s.run("gsubmit", "--interactive", s.write(doc{name: "short", command: sh("echo short; exit 2")}.json())); r.code != 2 || r.out != "short\r\n" {
		t.Errorf("a short one: %v", r)
	}
	s.must("gadm", "drain", s.nodeName(0), "-r", "test")
	if r := s.run("gsubmit", "--interactive", shell); r.code != 125 || !strings.Contains(r.err, "INTERACTIVE_NO_ROOM") {
		t.Errorf("no room: %v", r)
	}
	if r := s.run("gsubmit", "--interactive", "--hold", shell); r.code != 2 {
		t.Errorf("on hold: %v", r)
	}
	bad := doc{command: []string{"sh"}, scheduling: map[string]any{"notBefore": "2099-01-01T00:00:00Z"}}.json()
	if r := s.run("gsubmit", "--interactive", s.write(bad)); r.code != 2 || !strings.Contains(r.err, "request.scheduling.notBefore: cannot be combined with --interactive") {
		t.Errorf("not before: %v", r)
	}
}
