package e2e

import (
	"fmt"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// started is a command that goes on while a test does other things.
type started struct {
	*exec.Cmd
	out, err lockedBuffer
}

func (s *site) background(name string, args ...string) *started {
	s.t.Helper()
	return s.begin(exec.Command(filepath.Join(s.bin, name), args...))
}

func (s *site) begin(cmd *exec.Cmd) *started {
	s.t.Helper()
	b := &started{Cmd: cmd}
	b.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket())
	b.Stdout, b.Stderr = &b.out, &b.err
	if err := b.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = b.Process.Kill() })
	return b
}

func (b *started) code() int {
	_ = b.Wait()
	return shellCode(b.ProcessState)
}

// shellCode is the exit code as a shell has it: of what a signal ended 128 and its number.
func shellCode(state *os.ProcessState) int {
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return state.ExitCode()
}

// ignored says that this process, and so its children, ignores a signal.
func ignored(t *testing.T, sig os.Signal) bool {
	t.Helper()
	if ossignal.Ignored(sig) {
		t.Logf("NOT TESTED: this test was begun so that it ignores %v", sig)
		return true
	}
	return false
}

// TestWatchersOutliveTheController: all commands that wait or watch go on when a
// controller that was killed is back, and tell everything once.
func TestWatchersOutliveTheController(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	file := s.write(doc{name: "counts", cpus: 1, storage: []any{"/project"},
		command: sh("i=0; until [ -e /project/go ]; do i=$((i+1)); echo line $i; sleep 0.1; done; echo last; exit 5")}.json())
	submit := s.background("gsubmit", "--wait", file)
	eventually(t, "the job is there", func() bool { return strings.Contains(submit.out.String(), "1") })
	s.waitRunning("1")
	follow := s.background("glog", "-f", "1")
	wait := s.background("gqueue", "wait", "1")
	events := s.background("gqueue", "events", "-f", "1")
	all := s.background("gqueue", "events", "--json")
	piped := s.background("gqueue", "-i", "1")
	queue := s.program("gqueue", 12, 120, "--watch")
	info := s.program("ginfo", 5, 100, "--watch")
	eventually(t, "the log flows", func() bool { return strings.Contains(follow.out.String(), "line 3\n") })
	eventually(t, "the events flow", func() bool { return strings.Contains(events.out.String(), "RUNNING") })
	eventually(t, "the list is written again", func() bool { return strings.Count(piped.out.String(), "counts") >= 2 })
	queue.shows(`counts.*RUNNING`)
	info.shows(`7/8`)

	s.ctld.kill()
	for name, b := range map[string]*started{"gsubmit": submit, "gqueue wait": wait, "gqueue events": events, "gqueue events --json": all, "gqueue -i": piped, "glog": follow} {
		eventually(t, name+" says that the controller is away", func() bool { return strings.Contains(b.err.String(), "does not answer") })
	}
	s.ctld.cmd = nil
	s.ctld.start()
	eventually(t, "gsubmit is connected again", func() bool { return strings.Contains(submit.err.String(), "connected again") })
	eventually(t, "gqueue events --json is connected again", func() bool { return strings.Contains(all.err.String(), "connected again") })
	if err := os.WriteFile(filepath.Join(s.project(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[*started]int{submit: 5, wait: 1, events: 0, follow: 0} {
		if code := name.code(); code != want {
			t.Errorf("%v ended with %d, want %d: %s", name.Args, code, want, name.err.String())
		}
	}
	queue.shows(`0 active, 0 waiting`)
	info.shows(`8/8`)
	eventually(t, "the stream of all events has the end", func() bool { return strings.Contains(all.out.String(), `"state":"FAILED"`) })
	if n := len(regexp.MustCompile(`(?m)^.*  1 \(counts\)  FAILED`).FindAllString(events.out.String(), -1)); n != 1 {
		t.Errorf("the end is told %d times:\n%s", n, events.out.String())
	}
	told := strings.Split(strings.TrimSpace(events.out.String()), "\n")
	if unique := slices.Compact(slices.Sorted(slices.Values(told))); len(unique) != len(told) || len(told) != len(s.job("1").Events) {
		t.Errorf("%d lines, %d of them different, of a timeline of %d:\n%s", len(told), len(unique), len(s.job("1").Events), events.out.String())
	}
	log := strings.Split(strings.TrimSpace(follow.out.String()), "\n")
	for i, l := range log[:len(log)-1] {
		if l != fmt.Sprintf("line %d", i+1) {
			t.Fatalf("line %d of the log is %q", i+1, l)
		}
	}
	if log[len(log)-1] != "last" {
		t.Errorf("the log ends with %q", log[len(log)-1])
	}
	if got := s.must("glog", "--since", "1h", "--all", "1"); got != "0: "+strings.Join(log, "\n0: ")+"\n" {
		t.Errorf("the log of the last hour is %q", got)
	}
	if got := s.must("glog", "--since", "2999-01-01", "1"); got != "" {
		t.Errorf("the log of the future is %q", got)
	}
	if strings.Contains(piped.out.String(), "\x1b") {
		t.Errorf("codes for terminals in a pipe: %q", piped.out.String())
	}
}

// TestHelp: each command's help has three examples and its exit codes, its man
// page has both, and completion knows its words without a controller.
func TestHelp(t *testing.T) {
	needs(t)
	for _, name := range []string{"gsubmit", "gqueue", "gcancel", "ginfo", "gacct", "glog", "gexec", "gadm"} {
		help := execute(exec.Command(filepath.Join(bin, name), "--help"))
		_, examples, _ := strings.Cut(help.out, "\nExamples:\n")
		examples, codes, _ := strings.Cut(examples, "\n\n")
		n := 0
		for l := range strings.Lines(examples) {
			if strings.HasPrefix(l, "  "+name+" ") || strings.HasPrefix(l, "  "+name+"\n") || strings.Contains(l, "| "+name+" ") {
				n++
			}
		}
		if help.code != 0 || n < 3 || !strings.HasPrefix(codes, "Exit codes: ") {
			t.Errorf("%s --help has %d examples, and of exit codes %q", name, n, codes)
		}
		man := execute(exec.Command(filepath.Join(bin, name), "--man"))
		for _, want := range []string{".TH " + strings.ToUpper(name) + " 1", ".SH EXAMPLES", ".SH EXIT STATUS"} {
			if man.code != 0 || !strings.Contains(man.out, want) {
				t.Errorf("%s --man: no %s in %v", name, want, man)
			}
		}
		cmd := exec.Command(filepath.Join(bin, name), "--complete", "--contr")
		cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=/nonexistent/socket")
		if r := execute(cmd); r.code != 0 || !strings.HasPrefix(r.out, "--controller\t") || r.err != "" {
			t.Errorf("%s completes --contr: %v", name, r)
		}
	}
}
