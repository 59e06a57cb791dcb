package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/console"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/hosttest"
)

// TestExec enters a running job with the real command.
func TestExec(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.submit(doc{command: idle, env: map[string]string{"OF_JOB": "1"}})
	s.waitRunning(id)
	for _, tc := range []struct {
		name, input string
		args        []string
		want        result
	}{
		{name: "code", args: []string{id, "--", "sh", "-c", "echo out; echo err >&2; exit 7"}, want: result{7, "out\n", "err\n"}},
		{name: "true", args: []string{id, "--", "true"}},
		{name: "signal", args: []string{id, "--", "sh", "-c", "kill -15 $$"}, want: result{code: 143}},
		{name: "input", input: "a b\n", args: []string{id, "--", "cat"}, want: result{out: "a b\n"}},
		{name: "shell", input: "echo $OF_JOB; exit 9\n", args: []string{id}, want: result{code: 9, out: "1\n"}},
		{name: "flags_before", args: []string{"-e", "MINE=2", "-w", "/tmp", id, "sh", "-c", "echo $MINE; pwd"}, want: result{out: "2\n/tmp\n"}},
		{name: "terminal", args: []string{"-t", id, "--", "tty"}, want: result{out: "/dev/pts/0\r\n"}},
		{name: "missing", args: []string{id, "--", "nosuch"}, want: result{127, "", "gexec: command \"nosuch\" is not in the image\n"}},
		{name: "not_executable", args: []string{id, "--", "/etc"}, want: result{126, "", "gexec: command \"/etc\" is a directory\n"}},
		{name: "no_such_job", args: []string{"999", "--", "true"}, want: result{code: 125}},
		{name: "no_such_rank", args: []string{"--rank", "3", id, "--", "true"}, want: result{125, "", "gexec: job 1 has ranks 0 to 0\n"}},
		{name: "no_value", args: []string{"-e", "NOT_SET_HERE", id, "true"}, want: result{125, "", "gexec: --env NOT_SET_HERE has no value: want NOT_SET_HERE=VALUE, or a variable that is set here\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := s.runInput(tc.input, "gexec", tc.args...)
			if tc.name == "no_such_job" {
				tc.want.err = got.err // as gqueue says it
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("gexec (-want +got):\n%s", diff)
			}
		})
	}
	data := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{2}).Read(data)
	if r := s.runInput(string(data), "gexec", id, "--", "cat"); r.code != 0 || r.out != string(data) {
		t.Errorf("4 MiB through cat: code %d, %d bytes, %s", r.code, len(r.out), r.err)
	}
	s.must("gcancel", id)
	s.wait(id)
	if r := s.run("gexec", id, "--", "true"); r.code != 125 || !strings.Contains(r.err, "it can be entered only while it runs") {
		t.Errorf("gexec into an ended job: %v", r)
	}
}

// terminal is a command at a terminal of its own.
type terminal struct {
	t      *testing.T
	master console.Console
	slave  *os.File
	cmd    *exec.Cmd
	before string // its settings before the program began

	mu  sync.Mutex
	out []byte
}

func (s *site) atTerminal(height, width uint16, args ...string) *terminal {
	s.t.Helper()
	return s.program("gexec", height, width, args...)
}

// program runs one of the commands, or another program, at a terminal.
func (s *site) program(name string, height, width uint16, args ...string) *terminal {
	s.t.Helper()
	master, path, err := console.NewPty()
	if err != nil {
		s.t.Fatal(err)
	}
	slave, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(bin, name)
	}
	tm := &terminal{t: s.t, master: master, slave: slave, cmd: exec.Command(name, args...)}
	s.t.Cleanup(func() { slave.Close(); master.Close() })
	tm.resize(height, width)
	tm.cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket(), "TERM=vt100", "XDG_CONFIG_HOME="+s.dir+"/home")
	tm.cmd.Stdin, tm.cmd.Stdout, tm.cmd.Stderr = slave, slave, slave
	tm.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	tm.before = tm.state()
	if err := tm.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { // ends when the cleanup closes the terminal
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			tm.mu.Lock()
			tm.out = append(tm.out, buf[:n]...)
			tm.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return tm
}

func (tm *terminal) resize(height, width uint16) {
	tm.t.Helper()
	if err := tm.master.Resize(console.WinSize{Height: height, Width: width}); err != nil {
		tm.t.Fatal(err)
	}
}

func (tm *terminal) types(text string) {
	tm.t.Helper()
	if _, err := io.WriteString(tm.master, text); err != nil {
		tm.t.Fatal(err)
	}
}

func (tm *terminal) shows(pattern string) {
	tm.t.Helper()
	re := regexp.MustCompile(pattern)
	if !poll(patience, func() bool { tm.mu.Lock(); defer tm.mu.Unlock(); return re.Match(tm.out) }) {
		tm.t.Fatalf("the terminal never showed %s, but %q", pattern, tm.out)
	}
}

// state is what stty says of the terminal.
func (tm *terminal) state() string {
	tm.t.Helper()
	cmd := exec.Command("stty", "-g")
	cmd.Stdin = tm.slave
	out, err := cmd.Output()
	if err != nil {
		tm.t.Fatal(err)
	}
	return string(out)
}

func (tm *terminal) code() int {
	_ = tm.cmd.Wait()
	return shellCode(tm.cmd.ProcessState)
}

// inJob waits until a command line runs in a job of the site.
func (s *site) inJob(command string) {
	s.t.Helper()
	eventually(s.t, command+" runs", func() bool {
		procs, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range procs {
			line, _ := os.ReadFile(p + "/cmdline")
			groups, _ := os.ReadFile(p + "/cgroup")
			if strings.ReplaceAll(string(line), "\x00", " ") == command+" " && s.mine(string(groups)) {
				return true
			}
		}
		return false
	})
}

// TestExecTerminal: a shell at a terminal, its size and the change of it, its
// keys, its exit code; and the user's terminal is as it was, however it ends.
func TestExecTerminal(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.submit(doc{command: idle})
	s.waitRunning(id)
	tm := s.atTerminal(41, 101, id)
	before := tm.before
	tm.types("tty; stty size; echo $TERM-\n")
	tm.shows(`/dev/pts/0`)
	tm.shows(`41 101`)
	tm.shows(`vt100-`)
	if tm.state() == before {
		t.Error("the user's terminal edits lines itself while the shell runs")
	}
	tm.resize(30, 90)
	tm.types("while [ \"$(stty size)\" != '30 90' ]; do sleep 0.05; done; stty size\n")
	tm.shows(`\n30 90`)
	tm.types("sleep 1001\n")
	s.inJob("sleep 1001")
	tm.types("\x03") // for what runs there, not for gexec
	tm.types("echo st''ill; exit 5\n")
	tm.shows(`still`)
	if code := tm.code(); code != 5 {
		t.Errorf("the shell's exit code 5 became %d", code)
	}
	if after := tm.state(); after != before {
		t.Errorf("the terminal was %s and is %s", before, after)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if ignored(t, sig) {
			continue
		}
		tm := s.atTerminal(24, 80, id)
		tm.types("echo he''re\n")
		tm.shows("here")
		if err := tm.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := tm.code(); code != 128+int(sig) || tm.state() != before {
			t.Errorf("after %v: code %d, terminal %s, was %s", sig, code, tm.state(), before)
		}
	}
	tm = s.atTerminal(24, 80, id)
	tm.types("echo he''re\n")
	tm.shows("here")
	s.ctld.kill()
	if code := tm.code(); code != 125 || tm.state() != before {
		t.Errorf("after the controller: code %d, terminal %s, was %s", code, tm.state(), before)
	}
	tm.shows("the job is not")
	s.ctld.start()
	s.waitNodes("up", 1)
	if d := s.job(id); d.State.Final() {
		t.Errorf("the job ended with a stream:\n%s", describe(d))
	}
}

// TestExecRestarts: whoever is restarted says so to those who are in a job,
// and the job goes on.
func TestExecRestarts(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.submit(doc{command: idle})
	s.waitRunning(id)
	for _, tc := range []struct {
		name string
		hit  func()
		text string
	}{
		{"node_stopped", func() { _ = s.nodes[0].stop() }, "the node's daemon is being stopped, which ends this stream; the job goes on"},
		{"node_killed", s.nodes[0].kill, "broke the stream off"},
		{"controller_stopped", func() { _ = s.ctld.stop() }, "the controller is being stopped, which ends this stream; the job goes on"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out lockedBuffer
			cmd := exec.Command(filepath.Join(bin, "gexec"), id, "--", "sh", "-c", "echo up; sleep 1000")
			cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket())
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the command runs", func() bool { return strings.Contains(out.String(), "up\n") })
			tc.hit()
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 125 || !strings.Contains(out.String(), tc.text) {
				t.Errorf("code %d, output %q; want %q", code, out.String(), tc.text)
			}
			for _, d := range append(s.nodes, s.ctld) {
				if !d.running() {
					d.cmd = nil
					d.start()
				}
			}
			eventually(t, "the job can be entered", func() bool { return s.run("gexec", id, "--", "true").code == 0 })
		})
	}
	if d := s.job(id); d.State.Final() {
		t.Errorf("the job ended with a stream:\n%s", describe(d))
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestForwardInNodesNetwork: of the node's own network a forwarded port shows what
// the job has there, and not what the node has for itself.
func TestForwardInNodesNetwork(t *testing.T) {
	s := newSite(t, siteOptions{nodeNetwork: ", allowHost: true", ctldConfig: quick + "projects: [{name: default, hostNetwork: true}]\n"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, theirs, _ := net.SplitHostPort(l.Addr().String())
	address, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, own, _ := net.SplitHostPort(address)
	id := s.submit(doc{command: sh("nc -ll -p " + own + " -e echo mine & sleep 1000"), gbatch: map[string]any{"network": "host"}})
	s.waitRunning(id)
	var out lockedBuffer
	cmd := exec.Command(filepath.Join(bin, "gexec"), "--forward", "0:"+own, "--forward", "0:"+theirs, id)
	cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket())
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	local := func(port string) string {
		re := regexp.MustCompile(`forwarding (127\.0\.0\.1:\d+) to port ` + port + ` of job`)
		eventually(t, "gexec listens", func() bool { return re.MatchString(out.String()) })
		return re.FindStringSubmatch(out.String())[1]
	}
	eventually(t, "the job answers", func() bool { return ask(local(own)) == "mine" })
	if got := ask(local(theirs)); got != "" && !strings.Contains(got, "reset") {
		t.Errorf("the node's own service says %q", got)
	}
	eventually(t, "gexec says whose it is", func() bool { return strings.Contains(out.String(), "what listens there is not the job's") })
	s.must("gcancel", id)
	_ = cmd.Wait() // told by TestForward
}

// TestForward reaches a server in a job through a port here.
func TestForward(t *testing.T) {
	s := newSite(t, siteOptions{})
	address, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	id := s.submit(doc{command: sh(fmt.Sprintf("trap 'exit 1' TERM; echo http://$(hostname):%[1]s/lab?token=a1; nc -ll -p %[1]s -e sh -c 'echo hello; cat; echo bye' & wait", port))})
	s.waitRunning(id)
	var out lockedBuffer
	cmd := exec.Command(filepath.Join(bin, "gexec"), "--forward", "0:"+port, "--forward", "127.0.0.1:0:1", id)
	cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket())
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	local := func(port string) string {
		re := regexp.MustCompile(`forwarding (127\.0\.0\.1:\d+) to port ` + port + ` of job`)
		eventually(t, "gexec listens", func() bool { return re.MatchString(out.String()) })
		return re.FindStringSubmatch(out.String())[1]
	}
	talk := func() string {
		conn, err := net.Dial("tcp", local(port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "me too\n")
		_ = conn.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(conn)
		return string(b)
	}
	eventually(t, "gexec says where the job's notebook is", func() bool {
		_, here, _ := net.SplitHostPort(local(port))
		return strings.Contains(out.String(), "the job's server: http://localhost:"+here+"/lab?token=a1\n")
	})
	eventually(t, "the job answers", func() bool { return talk() == "hello\nme too\nbye\n" })
	conn, err := net.Dial("tcp", local("1"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if n, err := conn.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Error("a port where nobody listens answers")
	}
	eventually(t, "gexec says that nobody listens", func() bool { return strings.Contains(out.String(), "nothing listens on port 1 of the job") })
	s.must("gcancel", id)
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "CANCELLED") {
		t.Errorf("gexec --forward after the job: %v\n%s", err, out.String())
	}
}
