package noded

import (
	"fmt"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

func withTerminal(o *api.RunOrder) { o.Spec.Gbatch = &job.Gbatch{Terminal: true} }

// attach takes the terminal of a rank.
func (s *site) attach(id job.RankID, start api.AttachStart) *peer {
	s.t.Helper()
	p := s.enter(api.StreamAttach, id)
	p.send(api.JSONFrame(api.FrameStart, start))
	return p
}

const echoer = "echo ready; while read x; do [ \"$x\" = quit ] && exit 4; echo got $x of $(stty size); done"

// TestAttach: output, input, size and exit code of a rank's own program; who
// goes ends nothing and who comes again sees the latest output; the log has all.
func TestAttach(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(echoer, withTerminal))
	s.ready(id)
	p := s.attach(id, api.AttachStart{Width: 100, Height: 40, All: true})
	p.shows("ready\r\n")
	p.input("one\n")
	p.shows("got one of 40 100\r\n")
	p.send(api.ResizeFrame(81, 26))
	p.send(api.Frame{Type: api.FrameEndInput})
	p.input("two\n")
	p.shows("got two of 26 81\r\n")
	p.conn.CloseNow()

	a, b := s.attach(id, api.AttachStart{}), s.attach(id, api.AttachStart{})
	a.shows("got two of 26 81\r\n")
	b.input("three\n")
	a.shows("got three of 26 81\r\n")
	b.shows("got three of 26 81\r\n")

	s.halt() // a daemon that ends says so, and the next one goes on
	if f := a.failure(); f.Code != 125 || !strings.Contains(f.Message, "the job goes on") {
		t.Errorf("the daemon's end: %+v", f)
	}
	b.conn.CloseNow()
	s.start()
	s.phase(id, node.PhaseRunning)
	p = s.attach(id, api.AttachStart{})
	p.shows("got three")
	p.input("four\n")
	p.shows("got four of 26 81\r\n")
	p.input("quit\n")
	if code := p.exit(); code != 4 {
		t.Errorf("code %d, want 4", code)
	}
	if e := s.exit(id); e.Code != 4 {
		t.Errorf("exit %+v", e)
	}
	log := s.read(api.StreamRequest{Kind: "log", Rank: id})
	for _, want := range []string{"ready", "one", "two", "three", "four"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q: %q", want, log)
		}
	}
	s.empty()
}

// TestAttachSlow: a client that does not read, or types what nobody takes,
// holds up neither the job nor another client.
func TestAttachSlow(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order("stty -echo; echo ready; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo line $i; done; echo done; sleep 1000", withTerminal))
	s.ready(id)
	deaf := s.attach(id, api.AttachStart{All: true}) // reads nothing from here on
	for range api.StreamWindow / api.FrameChunk {
		deaf.send(api.Frame{Type: api.FrameInput, Data: make([]byte, api.FrameChunk)})
	}
	until(t, "the job to go on", func() bool {
		return strings.Contains(s.read(api.StreamRequest{Kind: "log", Rank: id, Tail: 3}), "line 100000")
	})
	p := s.attach(id, api.AttachStart{})
	p.shows("line 100000\r\n")
	if len(p.out) > 32<<10 { // a later client sees the last 8 KiB first
		t.Errorf("a later client was sent %d bytes of what was written before", len(p.out))
	}
	deaf.conn.CloseNow()
	p.conn.CloseNow()
	s.empty()
}

func TestAttachWithout(t *testing.T) {
	s := newSite(t, nil).start()
	id := s.longJob()
	f := s.attach(id, api.AttachStart{}).failure()
	if want := "the job has no terminal"; f.Code != 125 || !strings.Contains(f.Message, want) {
		t.Errorf("%+v, want %s", f, want)
	}
	s.empty()
}

// TestAttachShell: attaching to a shell works as at a terminal: the end of a
// command by a key, and of the shell.
func TestAttachShell(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order("exec sh -i", withTerminal))
	s.phase(id, node.PhaseRunning)
	p := s.attach(id, api.AttachStart{All: true})
	p.shows("# ")
	p.input("echo $((6*7)); sleep 1000\n")
	p.shows("42\r\n")
	until(t, "the command to be interrupted", func() bool {
		p.input("\x03") // one that comes between two commands is shown, and interrupts none
		_, after, _ := strings.Cut(s.read(api.StreamRequest{Kind: "log", Rank: id}), "^C")
		return strings.Contains(after, "# ")
	})
	p.input(fmt.Sprintf("echo $((%d+1)); exit 6\n", 1000))
	p.shows("1001\r\n")
	if code := p.exit(); code != 6 {
		t.Errorf("code %d", code)
	}
	s.exit(id)
	s.empty()
}
