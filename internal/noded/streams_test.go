package noded

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// TestLogs: parts of a log while its rank runs, after its end and after the
// controller has let go of it, and what is said when there is none.
func TestLogs(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order("for i in 1 2 3 4; do echo line $i; done; trap 'printf end; exit 0' TERM; echo ready; sleep 1000 & wait"))
	s.ready(id)
	all := "line 1\nline 2\nline 3\nline 4\nready\n"
	check := func(when string, req api.StreamRequest, want, offset string) {
		t.Helper()
		req.Kind, req.Rank = "log", id
		b := s.open(req)
		if diff := cmp.Diff(want, s.finish(b)); diff != "" {
			t.Errorf("%s: %+v (-want +got):\n%s", when, req, diff)
		}
		if b.offset != offset {
			t.Errorf("%s: %+v: first byte at %q, want %q", when, req, b.offset, offset)
		}
	}
	check("running", api.StreamRequest{}, all, "0")
	check("running", api.StreamRequest{Offset: 7}, all[7:], "7")
	check("running", api.StreamRequest{Tail: 2}, "line 4\nready\n", "21")
	check("running", api.StreamRequest{Tail: 100}, all, "0")

	follow := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true, Tail: 1})
	until(t, "the last line", func() bool { text, _ := follow.now(); return text == "ready\n" })
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 20_000})
	s.exit(id)
	if diff := cmp.Diff("ready\nend", s.finish(follow)); diff != "" {
		t.Errorf("followed (-want +got):\n%s", diff)
	}
	all += "end"
	check("ended", api.StreamRequest{Tail: 1}, "end", "34")
	check("ended", api.StreamRequest{Follow: true}, all, "0")
	s.drop(id)
	s.holdsNothing()
	check("let go", api.StreamRequest{Tail: 2}, "ready\nend", "28")
	check("let go", api.StreamRequest{Offset: 1000}, "", "1000")

	for name, tc := range map[string]struct {
		req  api.StreamRequest
		want string
	}{
		"none": {api.StreamRequest{Kind: "log", Rank: rankID(99)}, "no log of job 99 on this node: it never ran here, or its log was kept for its time and is gone"},
		"kind": {api.StreamRequest{Kind: "smell", Rank: id}, `this node does not know streams of kind "smell"; it may be older than the controller`},
	} {
		b := s.open(tc.req)
		s.finish(b)
		if diff := cmp.Diff(tc.want, b.fault); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestFollowBeforeStart: who follows a rank that has not started gets all.
func TestFollowBeforeStart(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Launches = 1 }).start()
	s.a.slots <- struct{}{} // nothing can start
	id := rankID(1)
	s.want(id, order("echo first; echo last"))
	s.phase(id, node.PhasePulling)
	b := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	until(t, "the stream to be open", b.opened)
	<-s.a.slots
	if diff := cmp.Diff("first\nlast\n", s.finish(b)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	s.empty()
}

// TestSlowReader: a client that does not read holds up neither the job nor the
// node, and its stream ends when it goes.
func TestSlowReader(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Logs.Quota = 1 << 20 }).start()
	id := rankID(1)
	s.want(id, order("echo ready; dd if=/dev/zero bs=64k count=400 2>/dev/null | tr '\\0' x; echo; echo done"))
	b := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	b.block()
	if e := s.exit(id); e.Code != 0 {
		t.Errorf("exit %+v", e)
	}
	b.leave()
	given := make(chan struct{})
	go func() { s.a.streams.Wait(); close(given) }()
	select {
	case <-given:
	case <-time.After(patience):
		t.Fatal("the stream is not given up")
	}
	out := s.read(api.StreamRequest{Kind: "log", Rank: id})
	if !strings.HasPrefix(out, "ready\nxxx") || !strings.HasSuffix(out, "xxx\ndone\n") || !strings.Contains(out, "bytes of output are not kept") {
		t.Errorf("kept output: %d bytes, %.40q ... %.40q", len(out), out, out[max(0, len(out)-40):])
	}
	if len(out) > 1<<20+200 {
		t.Errorf("kept %d bytes of a quota of 1 MiB", len(out))
	}
	s.empty()
}

// TestLogsArePruned: the oldest kept logs go first, and restarts change nothing.
func TestLogsArePruned(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Logs.KeepSize = 2*keptOverhead + 100 }).start()
	for i := range 4 {
		s.run(rankID(i+1), order(fmt.Sprintf("echo %d", i)))
		s.holdsNothing()
	}
	check := func() {
		t.Helper()
		b := s.open(api.StreamRequest{Kind: "log", Rank: rankID(1)})
		s.finish(b)
		if b.fault == "" {
			t.Error("the oldest log is still there")
		}
		if out := s.read(api.StreamRequest{Kind: "log", Rank: rankID(4)}); out != "3\n" {
			t.Errorf("the newest log is %q", out)
		}
	}
	check()
	s.halt()
	s.start()
	check()
	if len(s.a.kept.list) != 2 || s.a.kept.list[1].id != rankID(4) {
		t.Errorf("kept after a restart: %v", s.a.kept.list)
	}
}

// TestFollowOverGap: a follower that counts bytes from where a stream begins
// always knows where it is: a stream ends where bytes are missing, and the next
// one says where it goes on.
func TestFollowOverGap(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Logs.Quota = 1 << 20 }).start()
	id := rankID(1)
	s.want(id, order("dd if=/dev/zero bs=64k count=64 2>/dev/null | tr '\\0' x; echo; echo done"))
	s.exit(id)
	const total = 64*64<<10 + len("\ndone\n")
	first := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	text := s.finish(first)
	if first.offset != "0" || len(text) == 0 || strings.Trim(text, "x") != "" {
		t.Fatalf("first part at %s: %d bytes, %.100q", first.offset, len(text), strings.Trim(text, "x"))
	}
	second := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true, Offset: int64(len(text))})
	text = s.finish(second)
	at, err := strconv.Atoi(second.offset)
	if err != nil || at+len(text) != total || !strings.HasPrefix(text, "\n[gbatch: ") || !strings.HasSuffix(text, "x\ndone\n") {
		t.Errorf("second part at %s with %d bytes ends at %d, want %d; it begins with %.100q", second.offset, len(text), at+len(text), total, text)
	}
	if all := s.read(api.StreamRequest{Kind: "log", Rank: id}); strings.Count(all, "[gbatch: ") != 1 || !strings.HasSuffix(all, "x\ndone\n") {
		t.Errorf("who does not follow gets %d bytes with %d notices", len(all), strings.Count(all, "[gbatch: "))
	}
	s.empty()
}
