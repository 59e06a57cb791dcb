package ctld

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/streams"
	"gbatch/internal/node"
)

// runningSite has job 1, which runs on node n1.
func runningSite(t *testing.T) (*testSite, *fakeNode) {
	s := newSite(t, func(c *site.Config) {
		c.Projects = []site.Project{{Name: "default"}, {Name: "named", Members: byName("mia")}}
	})
	req := hello(1)
	req.Project = "named"
	s.submit(req, "")
	n := s.node("n1")
	n.sync(nil)
	for id := range n.held {
		n.report(id, node.PhaseRunning, nil)
	}
	return s, n
}

// asked waits until the node is asked for a stream.
func (n *fakeNode) asked() api.StreamRequest {
	n.s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		req := &api.SyncRequest{Instance: "i-" + n.name, InventoryHash: "h", Seen: n.seen, WaitMS: 5000}
		for _, st := range n.held {
			req.Ranks = append(req.Ranks, st)
		}
		resp, err := n.s.NodeSync(n.s.t.Context(), n.name, req)
		if err != nil {
			n.s.t.Fatal(err)
		}
		n.seen = resp.Version
		if len(resp.Streams) > 0 {
			return resp.Streams[0]
		}
	}
	n.s.t.Fatal("the node was asked for no stream")
	return api.StreamRequest{}
}

// open opens a stream to job 1, with the node's answer.
func (n *fakeNode) open(answer func(api.StreamRequest)) (*client.Stream, error) {
	type result struct {
		st  *client.Stream
		err error
	}
	got := make(chan result, 1)
	go func() { // ends with the handshake
		st, err := n.s.Enter(n.s.t.Context(), api.StreamExec, "1", 0)
		got <- result{st, err}
	}()
	answer(n.asked())
	r := <-got
	if r.err == nil {
		n.s.t.Cleanup(func() { r.st.Close() })
	}
	return r.st, r.err
}

// pair is a stream with both of its ends.
func (n *fakeNode) pair() (user, node *client.Stream) {
	n.s.t.Helper()
	user, err := n.open(func(req api.StreamRequest) {
		if req.Kind != api.StreamExec || req.Rank.Job != 1 {
			n.s.t.Errorf("asked for %+v", req)
		}
		var err error
		if node, err = n.s.DialStream(n.s.t.Context(), req.ID); err != nil {
			n.s.t.Fatal(err)
		}
		if _, err = n.s.DialStream(n.s.t.Context(), req.ID); !client.IsCode(err, api.CodeNotFound) {
			n.s.t.Errorf("a second node for a stream: %v", err)
		}
	})
	if err != nil {
		n.s.t.Fatal(err)
	}
	n.s.t.Cleanup(func() { node.Close() })
	return user, node
}

func receive(t *testing.T, st *client.Stream) api.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f, err := st.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func send(t *testing.T, st *client.Stream, f api.Frame) {
	t.Helper()
	if err := st.Send(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func TestSplice(t *testing.T) {
	_, n := runningSite(t)
	user, node := n.pair()
	long := bytes.Repeat([]byte("x"), 2*api.FrameChunk)
	for _, f := range []api.Frame{{Type: api.FrameStart, Data: long}, {Type: api.FrameInput, Data: []byte("a\x00")}, {Type: api.FrameEndInput, Data: []byte{}}, api.ResizeFrame(1, 2)} {
		send(t, user, f)
		if diff := cmp.Diff(f, receive(t, node)); diff != "" {
			t.Errorf("to the node (-want +got):\n%s", diff)
		}
	}
	for _, f := range []api.Frame{{Type: api.FrameOutput, Data: long[:api.FrameChunk]}, {Type: api.FrameErrOutput, Data: []byte("e")}, {Type: 77, Data: []byte("later")}, api.CountFrame(api.FrameExit, 3)} {
		send(t, node, f)
		if diff := cmp.Diff(f, receive(t, user)); diff != "" {
			t.Errorf("to the user (-want +got):\n%s", diff)
		}
	}
	user.Close()
	if _, err := node.Receive(t.Context()); err == nil {
		t.Error("the node does not hear that the user has gone")
	}
}

// TestAskedWithoutSocket: a page, which is not told why its WebSocket was refused,
// hears it by asking without one, and enters nothing by that.
func TestAskedWithoutSocket(t *testing.T) {
	s, n := runningSite(t)
	c := s.session(s.token(api.TokenRequest{Use: api.TokenLogin}).Secret)
	ask := func(path string) int {
		status, _ := s.browser("GET", path, of(c, "same-origin"))
		return status
	}
	if got := ask("/v1/jobs/1/exec?rank=5"); got != http.StatusNotFound {
		t.Errorf("a rank that is not there: %d", got)
	}
	got := make(chan int, 1)
	go func() { got <- ask("/v1/jobs/1/exec?rank=0") }() // ends with the answer
	node, err := s.DialStream(t.Context(), n.asked().ID)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	if status := <-got; status != http.StatusBadRequest {
		t.Errorf("a rank that can be entered: %d", status)
	}
	if _, err := node.Receive(t.Context()); err == nil {
		t.Error("the node does not hear that nobody enters")
	}
	list, err := s.Audit(t.Context(), client.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Entries {
		if strings.Contains(e.Change, "entered") {
			t.Errorf("it is written down that somebody entered: %+v", e)
		}
	}
}

// TestInputCredit: a node that takes no input is sent what fits its queue, and
// more when it gives room.
func TestInputCredit(t *testing.T) {
	_, n := runningSite(t)
	user, node := n.pair()
	sent := make(chan error, 1)
	go func() { sent <- user.SendInput(t.Context(), make([]byte, api.StreamWindow+10)) }() // ends with the test
	go func() {                                                                            // heeds the room that is given; ends with the stream
		for {
			if _, err := user.Receive(context.Background()); err != nil {
				return
			}
		}
	}()
	got := 0
	for got < api.StreamWindow {
		got += len(receive(t, node).Data)
	}
	select {
	case err := <-sent:
		t.Fatalf("sent %d bytes without room: %v", api.StreamWindow+10, err)
	default:
	}
	send(t, node, api.CountFrame(api.FrameWindow, 10))
	if got += len(receive(t, node).Data); got != api.StreamWindow+10 {
		t.Errorf("%d bytes came", got)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestStreamEnds(t *testing.T) {
	tests := map[string]struct {
		end  func(*testSite, *client.Stream)
		want string
		cuts bool // what is on its way may be lost
	}{
		"node_gone": {func(_ *testSite, node *client.Stream) { node.Close() }, "node n1 broke the stream off", false},
		"controller_stopped": {func(s *testSite, _ *client.Stream) {
			done := make(chan struct{})
			go func() { s.stop(); close(done) }() // awaited by the cleanup
			s.t.Cleanup(func() { <-done })
		}, "the controller is being stopped", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, n := runningSite(t)
			user, node := n.pair()
			send(t, node, api.Frame{Type: api.FrameOutput, Data: []byte("last words")})
			words := func() {
				if f := receive(t, user); string(f.Data) != "last words" {
					t.Errorf("lost what was written before: %+v", f)
				}
			}
			if tc.cuts {
				words()
			}
			tc.end(s, node)
			if !tc.cuts {
				words()
			}
			f := receive(t, user)
			if f.Type != api.FrameError || f.Failure().Code != 125 || !strings.Contains(f.Failure().Message, tc.want) {
				t.Errorf("told %d %q, want %q", f.Type, f.Data, tc.want)
			}
		})
	}
}

// TestSlowUser: who does not read keeps nobody else from reading, nor the
// controller from ending.
func TestSlowUser(t *testing.T) {
	s, n := runningSite(t)
	_, node := n.pair()
	stuck := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends when nothing more is taken, and then by the controller's end
		for {
			if err := node.Send(ctx, api.Frame{Type: api.FrameOutput, Data: make([]byte, api.FrameChunk)}); err != nil {
				stuck <- err
				return
			}
		}
	}()
	user, other := n.pair()
	send(t, other, api.Frame{Type: api.FrameOutput, Data: []byte("quick")})
	if f := receive(t, user); string(f.Data) != "quick" {
		t.Errorf("received %+v", f)
	}
	s.stop()
	if err := <-stuck; err == nil {
		t.Error("the node was not told")
	}
}

func TestStreamRefusals(t *testing.T) {
	s, n := runningSite(t)
	_, err := n.open(func(req api.StreamRequest) {
		if err := s.FailStream(t.Context(), req.ID, "rank 0 of job 1 has ended"); err != nil {
			t.Error(err)
		}
	})
	if !client.IsCode(err, api.CodeConflict) || !strings.Contains(err.Error(), "rank 0 of job 1 has ended") {
		t.Errorf("refused by the node: %v", err)
	}
	_, err = n.open(func(req api.StreamRequest) {
		if err := s.PostStreamAt(t.Context(), req.ID, 0, strings.NewReader("x")); !client.IsCode(err, api.CodeBadRequest) {
			t.Errorf("a log in place of two ways: %v", err)
		}
	})
	if !client.IsCode(err, api.CodeInternal) {
		t.Errorf("a log in place of two ways: %v", err)
	}
	for id := range n.held {
		n.report(id, node.PhaseEnded, &node.Exit{EndedMS: 1})
	}
	if _, err = s.Enter(t.Context(), api.StreamExec, "1", 0); !client.IsCode(err, api.CodeConflict) {
		t.Errorf("a job that has ended: %v", err)
	}
}

// TestWhoMayEnter: the right to enter a job is that to cancel it.
func TestWhoMayEnter(t *testing.T) {
	s, _ := runningSite(t)
	tests := map[string]struct {
		id   access.Identity
		rank string
		want string // code; empty: may
	}{
		"owner":       {access.Identity{User: "root", Role: access.RoleUser}, "", ""},
		"member":      {access.Identity{User: "mia", Role: access.RoleUser}, "0", ""},
		"operator":    {access.Identity{User: "ops", Role: access.RoleAdmin}, "", ""},
		"stranger":    {access.Identity{User: "eve", Role: access.RoleUser}, "", api.CodeDenied},
		"node":        {access.Identity{User: "", Role: access.RoleNode}, "", api.CodeDenied},
		"other_rank":  {access.Identity{User: "mia", Role: access.RoleUser}, "1", api.CodeNotFound},
		"no_rank":     {access.Identity{User: "mia", Role: access.RoleUser}, "-1", api.CodeBadRequest},
		"denied_rank": {access.Identity{User: "eve", Role: access.RoleUser}, "1", api.CodeDenied},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := access.WithCaller(t.Context(), tc.id, "")
			r, err := http.NewRequestWithContext(ctx, "GET", "/v1/jobs/1/exec?rank="+tc.rank, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.SetPathValue("id", "1")
			opened := &streams.OfJobs{Loop: s.server.loop, Jobs: s.server.jobs, Rights: s.server.rights, Streams: s.server.streams}
			node, _, err := opened.StreamTo(r, api.StreamExec)
			if tc.want == "" && (err != nil || node != "n1") || tc.want != "" && !client.IsCode(err, tc.want) {
				t.Errorf("node %q, error %v; want %q", node, err, tc.want)
			}
		})
	}
}
