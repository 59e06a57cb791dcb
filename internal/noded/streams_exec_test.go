package noded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/hosttest"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// peer is a client, with the controller left out.
type peer struct {
	t         testing.TB
	conn      *websocket.Conn
	room      int
	out, errs []byte
	ended     bool // FrameEndOutput came
}

// enter opens a two-way stream to a rank.
func (s *site) enter(kind string, id job.RankID) *peer {
	s.t.Helper()
	b := s.open(api.StreamRequest{Kind: kind, Rank: id})
	select {
	case conn := <-b.conn:
		s.t.Cleanup(func() { conn.CloseNow() })
		return &peer{t: s.t, conn: conn, room: api.StreamWindow}
	case <-time.After(patience):
		b.mu.Lock()
		defer b.mu.Unlock()
		s.t.Fatalf("the node does not dial back: %q", b.fault)
		return nil
	}
}

// exec begins a command.
func (s *site) exec(id job.RankID, e api.ExecStart) *peer {
	s.t.Helper()
	p := s.enter(api.StreamExec, id)
	p.send(api.JSONFrame(api.FrameStart, e))
	return p
}

func (p *peer) send(f api.Frame) {
	p.t.Helper()
	if err := p.conn.Write(p.t.Context(), websocket.MessageBinary, f.Append(nil)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) input(text string) {
	p.t.Helper()
	p.send(api.Frame{Type: api.FrameInput, Data: []byte(text)})
}

func (p *peer) next() api.Frame {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	_, data, err := p.conn.Read(ctx)
	if err != nil {
		p.t.Fatalf("the node has gone: %v; output so far %.300q, %.300q", err, p.out, p.errs)
	}
	f, err := api.ParseFrame(data)
	if err != nil {
		p.t.Fatal(err)
	}
	switch f.Type {
	case api.FrameOutput:
		p.out = append(p.out, f.Data...)
	case api.FrameErrOutput:
		p.errs = append(p.errs, f.Data...)
	case api.FrameWindow:
		p.room += f.Count()
	case api.FrameEndOutput:
		p.ended = true
	}
	return f
}

// shows reads until the output holds text.
func (p *peer) shows(text string) {
	p.t.Helper()
	for !bytes.Contains(p.out, []byte(text)) {
		if f := p.next(); f.Type == api.FrameExit || f.Type == api.FrameError {
			p.t.Fatalf("ended without %q: %q", text, p.out)
		}
	}
}

// exit reads to the command's end.
func (p *peer) exit() int {
	p.t.Helper()
	for {
		switch f := p.next(); f.Type {
		case api.FrameExit:
			p.conn.CloseNow()
			return f.Count()
		case api.FrameError:
			p.t.Fatalf("no exit: %v", f.Failure())
		}
	}
}

// failure reads to the stream's end without a result.
func (p *peer) failure() api.StreamFailure {
	p.t.Helper()
	for {
		switch f := p.next(); f.Type {
		case api.FrameError:
			p.conn.CloseNow()
			return *f.Failure()
		case api.FrameExit:
			p.t.Fatalf("exit %d in place of a failure", f.Count())
		}
	}
}

func sh(line string) api.ExecStart { return api.ExecStart{Args: []string{"sh", "-c", line}} }

// longJob runs until it is ended, and has said so.
func (s *site) longJob(change ...func(*api.RunOrder)) job.RankID {
	s.t.Helper()
	id := rankID(1)
	s.want(id, order("echo ready; trap 'exit 0' TERM; while :; do sleep 0.05; done", change...))
	s.ready(id)
	s.phase(id, node.PhaseRunning) // by the node's word too
	return id
}

func TestExec(t *testing.T) {
	s := newSite(t, nil).start()
	id := s.longJob(func(o *api.RunOrder) { o.Spec.Request.Docker.Environment = map[string]string{"OUTER": "1"} })
	tests := map[string]struct {
		start    api.ExecStart
		input    string
		out, err string
		code     int
	}{
		"code":       {start: sh("echo out; echo err >&2; exit 7"), out: "out\n", err: "err\n", code: 7},
		"signal":     {start: sh("kill -9 $$"), code: 137},
		"input":      {start: sh("cat; echo end"), input: "a\x00b", out: "a\x00bend\n"},
		"env":        {start: api.ExecStart{Args: []string{"sh", "-c", "echo $OUTER$INNER"}, Env: []string{"INNER=2"}}, out: "12\n"},
		"directory":  {start: api.ExecStart{Args: []string{"pwd"}, WorkDir: "/tmp"}, out: "/tmp\n"},
		"user":       {start: api.ExecStart{Args: []string{"id", "-un"}, User: "bob"}, out: "bob\n"},
		"shell":      {input: "echo from the shell; exit 5\n", out: "from the shell\n", code: 5},
		"left_over":  {start: sh("(trap '' HUP; sleep 1000) & echo on"), out: "on\n"}, // it holds the output open
		"cgroup":     {start: sh("cmp /proc/self/cgroup /proc/1/cgroup && echo same"), out: "same\n"},
		"namespaces": {start: sh("for n in pid mnt net ipc uts; do [ $(readlink /proc/self/ns/$n) = $(readlink /proc/1/ns/$n) ] || echo $n; done")},
		"capabilities": {start: sh("for k in CapEff CapBnd Seccomp NoNewPrivs; do " +
			"[ \"$(grep ^$k: /proc/self/status)\" = \"$(grep ^$k: /proc/1/status)\" ] || grep $k /proc/self/status; done")},
		"devices": {start: sh("mknod /dev/d$$ b 7 0 && cat /dev/d$$; mknod /dev/k$$ c 1 11 && cat /dev/k$$ || true"),
			err: "mknod: /dev/dPID: Operation not permitted\nmknod: /dev/kPID: Operation not permitted\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := s.exec(id, tc.start)
			p.t = t
			if tc.input != "" {
				p.input(tc.input)
			}
			p.send(api.Frame{Type: api.FrameEndInput})
			code := p.exit()
			if diff := cmp.Diff(tc.out, string(p.out)); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.err, maskPID(string(p.errs))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if code != tc.code {
				t.Errorf("code %d, want %d", code, tc.code)
			}
		})
	}
	s.drop(id)
	s.holdsNothing() // not kept alive by what was left running
}

// maskPID replaces the digits behind /dev/d and /dev/k.
func maskPID(s string) string {
	for _, prefix := range []string{"/dev/d", "/dev/k"} {
		if before, after, ok := strings.Cut(s, prefix); ok {
			s = before + prefix + "PID" + strings.TrimLeft(after, "0123456789")
		}
	}
	return s
}

func TestExecFailures(t *testing.T) {
	s := newSite(t, nil).start()
	id := s.longJob()
	for name, tc := range map[string]struct {
		start api.ExecStart
		want  api.StreamFailure
	}{
		"missing":    {api.ExecStart{Args: []string{"nosuch"}}, api.StreamFailure{Message: `command "nosuch" is not in the image`, Code: 127}},
		"no_program": {api.ExecStart{Args: []string{"/etc/passwd"}}, api.StreamFailure{Message: `command "/etc/passwd" is not executable by the container's user`, Code: 126}},
		"user":       {api.ExecStart{Args: []string{"id"}, User: "carol"}, api.StreamFailure{Message: `image has no user "carol" in /etc/passwd`, Code: 125}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, s.exec(id, tc.start).failure()); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
		})
	}
	for name, tc := range map[string]struct {
		kind string
		rank job.RankID
		want string
	}{
		"other_rank": {api.StreamExec, rankID(9), "rank 0 of job 9 has ended"},
		"other_kind": {"telepathy", id, `this node does not know streams of kind "telepathy"; it may be older than the controller`},
	} {
		t.Run(name, func(t *testing.T) {
			b := s.open(api.StreamRequest{Kind: tc.kind, Rank: tc.rank})
			until(t, "a refusal", b.opened)
			if b.fault != tc.want {
				t.Errorf("refused with %q, want %q", b.fault, tc.want)
			}
		})
	}
	s.empty()
}

// TestExecTerminal: size, its change, typed input, and the end of input. The
// signal of a new size breaks off a shell's read, so that it reads afterwards.
func TestExecTerminal(t *testing.T) {
	s := newSite(t, nil).start()
	id := s.longJob()
	p := s.exec(id, api.ExecStart{Args: []string{"sh", "-c", "trap 'stty size; new=1' WINCH; tty; stty size; while [ -z \"$new\" ]; do sleep 0.05; done; while read x; do echo got $x; done; echo over; exit 3"}, Terminal: true, Width: 100, Height: 40})
	p.shows("40 100")
	p.send(api.ResizeFrame(81, 26))
	p.input("one\n")
	p.shows("26 81")
	p.shows("got one")
	p.send(api.Frame{Type: api.FrameEndInput})
	if code := p.exit(); code != 3 || !strings.Contains(string(p.out), "/dev/pts/") || !strings.Contains(string(p.out), "over") {
		t.Errorf("code %d, output %q", code, p.out)
	}
	s.empty()
}

// TestExecBinary sends 10 MiB through a command and back, unchanged, with all
// of the flow control at work.
func TestExecBinary(t *testing.T) {
	s := newSite(t, nil).start()
	id := s.longJob()
	p := s.exec(id, api.ExecStart{Args: []string{"cat"}})
	data := make([]byte, 10<<20)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(data)
	began := time.Now()
	for sent := 0; sent < len(data); {
		if p.room == 0 {
			p.next()
			continue
		}
		n := min(p.room, api.FrameChunk, len(data)-sent)
		p.send(api.Frame{Type: api.FrameInput, Data: data[sent : sent+n]})
		p.room -= n
		sent += n
	}
	p.send(api.Frame{Type: api.FrameEndInput})
	if code := p.exit(); code != 0 || sha256.Sum256(p.out) != sha256.Sum256(data) {
		t.Errorf("code %d, %d bytes came back, or others", code, len(p.out))
	}
	t.Logf("10 MiB there and back in %v", time.Since(began))
	s.empty()
}

// TestExecSlowReader: one who does not read holds up their command, and
// nothing else: not the job, its log, or another command.
func TestExecSlowReader(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order("echo ready; i=0; while :; do i=$((i+1)); echo line $i; sleep 0.02; done"))
	s.ready(id)
	p := s.exec(id, sh("yes"))
	p.shows("y\n")
	follow := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	until(t, "the log to go on", func() bool { text, _ := follow.now(); return strings.Contains(text, "line 50") })
	if code := s.exec(id, sh("exit 4")).exit(); code != 4 {
		t.Errorf("another command: code %d", code)
	}
	deaf := s.exec(id, sh("sleep 1000"))
	for range api.StreamWindow / api.FrameChunk {
		deaf.send(api.Frame{Type: api.FrameInput, Data: make([]byte, api.FrameChunk)})
	}
	deaf.conn.CloseNow()
	p.conn.CloseNow()
	s.gone(id, "yes", "sleep 1000")
	s.empty()
}

// gone waits until no such command line is in the rank's container.
func (s *site) gone(id job.RankID, commands ...string) {
	s.t.Helper()
	until(s.t, fmt.Sprintf("the end of %q", commands), func() bool {
		files, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup/memory", s.a.host.CgroupPath(id), "cgroup.procs"))
		more, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", s.a.host.CgroupPath(id), "cgroup.procs"))
		for _, f := range append(files, more...) {
			procs, _ := os.ReadFile(f)
			for pid := range strings.FieldsSeq(string(procs)) {
				line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				for _, c := range commands {
					if strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")) == c {
						return false
					}
				}
			}
		}
		return len(files)+len(more) > 0
	})
}

// TestExecEnds: the command ends with its client, and the job does not;
// the job's end ends the command; the daemon's end tells the client.
func TestExecEnds(t *testing.T) {
	s := newSite(t, nil).start()
	id := s.longJob()
	p := s.exec(id, sh("echo up; sleep 1234"))
	p.shows("up")
	p.conn.CloseNow()
	s.gone(id, "sleep 1234", "sh -c echo up; sleep 1234")

	term := s.exec(id, api.ExecStart{Args: []string{"sh", "-c", "echo up; sleep 1235"}, Terminal: true})
	term.shows("up")
	term.conn.CloseNow()
	s.gone(id, "sleep 1235", "sh -c echo up; sleep 1235")

	p = s.exec(id, sh("echo up; sleep 1236"))
	p.shows("up")
	s.halt()
	if f := p.failure(); f.Code != 125 || !strings.Contains(f.Message, "the job goes on") {
		t.Errorf("the daemon's end: %+v", f)
	}
	soon := make(chan error, 1)
	s.edit = func(a *Agent) { // before it goes on with its ranks
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := (ranksForStreams{a}).Container(ctx, id, ""); err == nil || !strings.Contains(err.Error(), "is being taken over") {
			t.Errorf("as the rank is being taken over: %v", err)
		}
		go func() { // ends with the wait for it
			_, err := ranksForStreams{a}.Container(t.Context(), id, "")
			soon <- err
		}()
	}
	s.start()
	if err := <-soon; err != nil {
		t.Errorf("a moment later: %v", err)
	}
	p = s.exec(id, sh("echo up; sleep 1237"))
	p.shows("up")
	s.gone(id, "sleep 1236", "sh -c echo up; sleep 1236")
	if s.phase(id, node.PhaseRunning).Phase != node.PhaseRunning {
		t.Error("the job has ended")
	}
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 20_000})
	if e := s.exit(id); e.Code != 0 {
		t.Errorf("the job ended with %+v", e)
	}
	if code := p.exit(); code != 137 {
		t.Errorf("the command ended with %d", code)
	}
	s.empty()
}

func TestForward(t *testing.T) {
	s := newSite(t, nil).start()
	port := freePort(t)
	id := s.longJob()
	server := s.exec(id, sh(fmt.Sprintf("nc -ll -p %d -e sh -c 'echo hello; cat; echo bye'", port)))
	defer server.conn.CloseNow()
	var p *peer
	until(t, "the server to listen", func() bool {
		p = s.enter(api.StreamForward, id)
		p.send(api.JSONFrame(api.FrameStart, api.ForwardStart{Port: uint16(port)}))
		f := p.next()
		if f.Type != api.FrameError {
			return true
		}
		want := api.StreamFailure{Message: fmt.Sprintf("nothing listens on port %d of the job", port), Code: 125}
		if diff := cmp.Diff(want, *f.Failure()); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
		return false
	})
	p.input("me too\n")
	p.shows("me too")
	p.send(api.Frame{Type: api.FrameEndInput})
	for !p.ended {
		p.next()
	}
	if diff := cmp.Diff("hello\nme too\nbye\n", string(p.out)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	s.empty()
}

func freePort(t *testing.T) int {
	address, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return n
}
