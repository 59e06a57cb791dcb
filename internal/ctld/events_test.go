package ctld

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
)

// ear collects what a stream of events tells.
type ear struct {
	t      *testing.T
	events chan client.Event
	stop   func()
}

// listen returns when the stream stands.
func listen(t *testing.T, c *client.Client, f client.EventFilter) *ear {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	e := &ear{t: t, events: make(chan client.Event, 1000)}
	done := make(chan struct{})
	go func() { // ended by stop
		defer close(done)
		for ev, err := range c.Events(ctx, f) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("the stream broke: %v", err)
				}
				return
			}
			e.events <- ev
		}
	}()
	e.stop = func() { cancel(); <-done }
	t.Cleanup(e.stop)
	if ev := e.next(); ev.Kind != api.EventPing {
		t.Fatalf("the first event is %+v", ev)
	}
	return e
}

func (e *ear) next() client.Event {
	e.t.Helper()
	select {
	case ev := <-e.events:
		return ev
	case <-time.After(time.Minute):
		e.t.Fatal("no event for a minute")
		return client.Event{}
	}
}

// until gives the first event of a job that is so.
func (e *ear) until(ok func(*api.JobEvent) bool) client.Event {
	e.t.Helper()
	for {
		if ev := e.next(); ev.Job != nil && ok(ev.Job) {
			return ev
		}
	}
}

func (s *testSite) hold(c *client.Client, number job.Number) {
	s.t.Helper()
	if _, err := c.Action(s.t.Context(), "hold", &api.ActionRequest{IDs: []string{fmt.Sprint(number)}}); err != nil {
		s.t.Fatal(err)
	}
}

// TestEventsGoOn: a client that was away gets what it missed, each change once;
// after a restart of the controller, or too long a time, a reset.
func TestEventsGoOn(t *testing.T) {
	s := newSite(t, nil)
	first := listen(t, s.Client, client.EventFilter{})
	a, err := s.Submit(t.Context(), hello(1), "")
	if err != nil {
		t.Fatal(err)
	}
	seen := first.until(func(j *api.JobEvent) bool { return j.Number == a.Number })
	if j := seen.Job; j.Name != "hello" || j.State != job.Queued || len(j.Lines) == 0 || j.Version == 0 || j.Was != "" {
		t.Errorf("the event is %+v", j)
	}
	first.stop()
	s.hold(s.Client, a.Number)
	b, err := s.Submit(t.Context(), hello(1), "")
	if err != nil {
		t.Fatal(err)
	}
	again := listen(t, s.Client, client.EventFilter{After: seen.ID})
	last := seen.ID
	held := false
	again.until(func(j *api.JobEvent) bool {
		held = held || j.Number == a.Number && j.State == job.OnHold && j.Was == string(job.Queued)
		return j.Number == b.Number
	})
	if !held {
		t.Error("the hold was missed")
	}
	again.stop()

	s.stop()
	s.start()
	for name, after := range map[string]uint64{"before the restart": last, "never": s.server.loop.Feed.Position() + 1} {
		e := listen(t, s.Client, client.EventFilter{After: after})
		ev := e.next()
		if ev.Kind != api.EventReset || ev.ID <= last {
			t.Errorf("%s: after id %d came %+v", name, after, ev)
		}
		e.stop()
	}
}

// TestEventsOfOthers: strangers hear that a job changed, and neither its name
// nor why nor what was said of it.
func TestEventsOfOthers(t *testing.T) {
	s := closedSite(t)
	for user, private := range map[string]bool{"eve": true, "mia": false, "ops": false} {
		c := s.user(user)
		e := listen(t, c, client.EventFilter{Jobs: []string{"1"}})
		s.hold(s.Client, 1)
		j := e.until(func(j *api.JobEvent) bool { return j.State == job.OnHold }).Job
		if got := j.Private && j.Name != "hush-name" && j.ReasonText == "" && len(j.Lines) == 0; got != private {
			t.Errorf("%s hears %+v", user, j)
		}
		e.stop()
		if _, err := s.Action(t.Context(), "release", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]client.EventFilter{"user": {User: "ann"}, "project": {Project: "lab"}} {
		e := listen(t, s.user("ann"), f)
		if _, err := s.Submit(t.Context(), hello(1), ""); err != nil { // root's, in the default project
			t.Fatal(err)
		}
		s.hold(s.Client, 1)
		if j := e.until(func(*api.JobEvent) bool { return true }).Job; j.Number != 1 {
			t.Errorf("with the filter %s came %+v", name, j)
		}
		e.stop()
		if _, err := s.Action(t.Context(), "release", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
			t.Fatal(err)
		}
	}
	for ev, err := range s.Events(t.Context(), client.EventFilter{Jobs: []string{"1", "77"}}) {
		if !client.IsCode(err, api.CodeNotFound) {
			t.Errorf("of a job that is not there: %+v, %v", ev, err)
		}
		break
	}
}

// TestEventsOfNodes: nodes that come, change and go.
func TestEventsOfNodes(t *testing.T) {
	s := newSite(t, nil)
	e := listen(t, s.Client, client.EventFilter{Nodes: true})
	s.node("n1")
	if _, err := s.Drain(t.Context(), "n1", api.DrainRequest{Reason: "fan"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"up", "drained"} {
		for {
			ev := e.next()
			if ev.Node == nil {
				continue
			}
			if ev.Node.Name != "n1" || ev.Node.State != want {
				t.Errorf("got %+v, want n1 %s", ev.Node, want)
			}
			break
		}
	}
}

// TestEventsNeverRead: a client that reads nothing is dropped, and nobody waits
// for it meanwhile.
func TestEventsNeverRead(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Limits.PerUser.Streams = 1 })
	s.server.changes.Patience = 200 * time.Millisecond
	conn, err := net.Dial("unix", s.server.front.lns[0].Addr().String()) // it holds less than a TCP connection
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	token := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: gctld\r\nAuthorization: Bearer %s\r\n\r\n", api.PathEvents, token); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	ann := s.user("ann")
	for _, err := range ann.Events(t.Context(), client.EventFilter{}) {
		if !client.IsCode(err, api.CodeTooMany) {
			t.Fatalf("a second stream beside it: %v", err)
		}
		break
	}
	deadline := time.Now().Add(time.Minute)
	long := hello(1)
	long.Job = []byte(strings.Replace(string(long.Job), `"hello"`, `"`+strings.Repeat("x", 128)+`"`, 1))
	for n := 0; s.server.streams.Count() > 0; n++ {
		if time.Now().After(deadline) {
			t.Fatalf("after %d jobs it is still there", n)
		}
		if _, err := s.Submit(t.Context(), long, ""); err != nil {
			t.Fatal(err)
		}
	}
	listen(t, ann, client.EventFilter{}) // the one that was dropped is not counted any more
}
