package oci_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/oci"
	"gbatch/oci/failure"
	"gbatch/oci/wire"
)

// execBox runs a container that waits, for commands to be executed in.
func execBox(t *testing.T, user string) *oci.Container {
	t.Helper()
	b := newBox(t, "echo ready; sleep 1000")
	b.req.User, b.req.Env = user, []string{"OUTER=1"}
	s := b.start()
	b.await("ready")
	return s
}

// execOutput runs a command with a pipe for its output.
func execOutput(t *testing.T, s *oci.Container, req wire.ExecRequest) (string, int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := s.Exec(req, wire.ExecStdio{Stdout: w, Stderr: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return string(out), code
}

func TestExec(t *testing.T) {
	s := execBox(t, "")
	out, code := execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", "echo $OUTER$INNER; pwd; id -un; exit 6"}, Env: []string{"INNER=2"}, WorkDir: "/work"})
	if out != "12\n/work\nroot\n" || code != 6 {
		t.Errorf("output %q, code %d", out, code)
	}
	out, _ = execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", "id -un; echo $HOME; grep CapEff /proc/self/status"}, User: "bob"})
	if out != "bob\n/home/bob\nCapEff:\t0000000000000000\n" {
		t.Errorf("as bob: %q", out)
	}
	_, code = execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", "kill -9 $$"}})
	if code != 137 {
		t.Errorf("killed: code %d", code)
	}
	_, err := s.Exec(wire.ExecRequest{Args: []string{"nonesuch"}}, wire.ExecStdio{})
	if err == nil || !strings.Contains(err.Error(), `command "nonesuch" is not in the image`) {
		t.Errorf("missing command: %v", err)
	}
}

// TestKilledAsEntered: a container that is killed while further processes are set up in it ends.
func TestKilledAsEntered(t *testing.T) {
	for round := range 20 {
		s, entered := execBox(t, ""), make(chan bool)
		for range 4 {
			go func() { // ends with the container
				for {
					p, err := s.Exec(wire.ExecRequest{Args: []string{"true"}}, wire.ExecStdio{})
					if err != nil {
						return
					}
					_, _ = p.Wait()
					select {
					case entered <- true:
					case <-s.Done():
					}
				}
			}()
		}
		for range round {
			<-entered
		}
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.Done():
		case <-time.After(patience):
			t.Fatal("the container does not end")
		}
	}
}

// TestTimersAreExact: what a shim and the set-up have of timer slack is not handed on,
// nor is it what a program is reset to.
func TestTimersAreExact(t *testing.T) {
	const slack = "read a </proc/$$/timerslack_ns; echo 0 >/proc/$$/timerslack_ns; read b </proc/$$/timerslack_ns; echo slack $a $b; "
	const usual = "slack 50000 50000\n"
	b := newBox(t, slack+"sleep 1000")
	s := b.start()
	b.await(usual)
	if out, _ := execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", slack}}); out != usual {
		t.Errorf("a further process has %q", out)
	}
}

func TestExecStdin(t *testing.T) {
	s := execBox(t, "")
	inR, inW, _ := os.Pipe()
	outR, outW, _ := os.Pipe()
	p, err := s.Exec(wire.ExecRequest{Args: []string{"cat"}}, wire.ExecStdio{Stdin: inR, Stdout: outW})
	inR.Close()
	outW.Close()
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(inW, "through")
	inW.Close()
	out, _ := io.ReadAll(outR)
	if code, err := p.Wait(); err != nil || code != 0 || string(out) != "through" {
		t.Errorf("output %q, code %d, %v", out, code, err)
	}
}

func TestExecTerminal(t *testing.T) {
	s := execBox(t, "")
	p, err := s.Exec(wire.ExecRequest{Args: []string{"sh", "-c", "tty; stty size; read x; stty size; echo got $x; exit 4"}, Terminal: true, Width: 100, Height: 40}, wire.ExecStdio{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var out strings.Builder
	buf := make([]byte, 1024)
	for !strings.Contains(out.String(), "40 100") {
		n, err := p.Terminal.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, out.String())
		}
		out.Write(buf[:n])
	}
	if err := p.Resize(80, 25); err != nil {
		t.Fatal(err)
	}
	io.WriteString(p.Terminal, "me\n")
	for {
		n, err := p.Terminal.Read(buf)
		if err != nil {
			break // EIO is the end
		}
		out.Write(buf[:n])
	}
	if code, err := p.Wait(); err != nil || code != 4 {
		t.Errorf("code %d, %v", code, err)
	}
	for _, want := range []string{"/dev/pts/0", "25 80", "got me"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %q", want, out.String())
		}
	}
}

// A command does not outlive the client that asked for it.
func TestExecEnds(t *testing.T) {
	s := execBox(t, "")
	closed, err := s.Exec(wire.ExecRequest{Args: []string{"sleep", "1000"}}, wire.ExecStdio{})
	if err != nil {
		t.Fatal(err)
	}
	signalled, err := s.Exec(wire.ExecRequest{Args: []string{"sleep", "1000"}}, wire.ExecStdio{})
	if err != nil {
		t.Fatal(err)
	}
	if err := signalled.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, err := signalled.Wait(); err != nil || code != 130 {
		t.Errorf("code %d, %v", code, err)
	}
	closed.Close()
	poll(t, "end of both commands", func() bool { st, err := s.Stats(); return err == nil && st.Pids <= 2 })
}

// TestExecHearsEnd: the container's end ends the commands in it, and who began each hears so.
func TestExecHearsEnd(t *testing.T) {
	b := newBox(t, "echo ready; until [ -e /tmp/over ]; do sleep 0.01; done")
	s := b.start()
	b.await("ready")
	var commands []*wire.ExecProcess
	for range 20 {
		p, err := s.Exec(wire.ExecRequest{Args: []string{"sleep", "1000"}}, wire.ExecStdio{})
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, p)
	}
	if _, code := execOutput(t, s, wire.ExecRequest{Args: []string{"touch", "/tmp/over"}}); code != 0 {
		t.Fatal(code)
	}
	for i, p := range commands {
		if code, err := p.Wait(); code != 137 || err != nil {
			t.Errorf("command %d: %d, %v", i, code, err)
		}
	}
}

// Who goes away takes along what the command started, be it deaf to HUP; what
// a command that ended by itself left running stays.
func TestExecHangsUp(t *testing.T) {
	s := execBox(t, "")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := s.Exec(wire.ExecRequest{Args: []string{"sh", "-c", "trap '' HUP; (sleep 1000) & echo up; sleep 1000"}}, wire.ExecStdio{Stdout: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	p.Close()
	poll(t, "end of the session", func() bool { return living(t, p.PID) == 0 })
	if p, err = s.Exec(wire.ExecRequest{Args: []string{"sh", "-c", "sleep 1000 &"}}, wire.ExecStdio{}); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); err != nil || code != 0 {
		t.Fatalf("code %d, %v", code, err)
	}
	if n := living(t, p.PID); n != 1 {
		t.Errorf("%d processes of the session live on, want the one left running", n)
	}
}

// living counts the processes of a session that are no zombies.
func living(t *testing.T, session int) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		if fields[0] != "Z" && fields[3] == strconv.Itoa(session) {
			n++
		}
	}
	return n
}

func TestExecFailures(t *testing.T) {
	s := execBox(t, "")
	tests := map[string]struct {
		req  wire.ExecRequest
		kind failure.Kind
		code int
	}{
		"missing":    {wire.ExecRequest{Args: []string{"nonesuch"}}, failure.CommandNotFound, 127},
		"no_program": {wire.ExecRequest{Args: []string{"/etc/passwd"}}, failure.CommandNotRunable, 126},
		"user":       {wire.ExecRequest{Args: []string{"id"}, User: "nobody-here"}, failure.UserUnknown, 125},
		"directory":  {wire.ExecRequest{Args: []string{"id"}, WorkDir: "/etc/passwd/x"}, failure.WorkDirMissing, 125},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := s.Exec(tc.req, wire.ExecStdio{})
			var f *failure.Failure
			if !errors.As(err, &f) || f.Kind != tc.kind || f.Code() != tc.code {
				t.Errorf("%v: %+v, want %s", err, f, tc.kind)
			}
		})
	}
}

func TestExecMayNotGainRoot(t *testing.T) {
	s := execBox(t, "bob")
	if _, err := s.Exec(wire.ExecRequest{Args: []string{"id"}, User: "root"}, wire.ExecStdio{}); err == nil {
		t.Error("root in a container of bob")
	}
}
