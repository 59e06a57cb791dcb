package replica

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"gbatch/internal/state"
)

// plug is what connects a member to the others.
type plug struct {
	mu    sync.Mutex
	out   bool
	conns []net.Conn
}

// keep passes a connection on, or ends it while the plug is out.
func (p *plug) keep(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out {
		return nil, errors.Join(errors.New("the plug is out"), c.Close())
	}
	p.conns = append(p.conns, c)
	return c, nil
}

func (p *plug) set(out bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = out
	for _, c := range p.conns {
		_ = c.Close() // it may be closed already
	}
	p.conns = nil
}

// plugged is a listener behind a plug.
type plugged struct {
	net.Listener
	plug *plug
}

func (l plugged) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c, err = l.plug.keep(c, nil); err == nil {
			return c, nil
		}
	}
}

// TestOldLeader: one that still takes itself for the leader when another one has stored something, as after it stood
// still, does not say that what it knows is fresh.
func TestOldLeader(t *testing.T) {
	t.Parallel()
	a, b, c := newMember(t, "a"), newMember(t, "b").joins(), newMember(t, "c").joins()
	a.start()
	defer func() { a.stop() }()
	_, lead := leader(t, a)
	for _, m := range []*member{b, c} {
		m.start()
		defer func() { m.stop() }()
		takesPart(t, m, a, b, c)
	}
	until(t, "something is stored", func() bool {
		if err := lead.Store.Commit([]state.Record{jobRecord(0)}); err == nil {
			return true
		}
		_, lead = leader(t, a, b, c)
		return false
	})
	until(t, "the others have it, and know of each other", func() bool { return b.has(1) == 1 && c.has(1) == 1 })
	a.stop()
	leader(t, b, c)
	a.patient = time.Hour // before it gives up its place by itself
	a.start()
	var old *Lead
	until(t, "a leads, and is cut off", func() bool {
		a.plug.set(false) // it was cut off too late
		for _, m := range []*member{b, c} {
			_ = m.r.Transfer("a") // who does not lead cannot
		}
		if !a.r.Leading() {
			return false
		}
		var err error
		if old, err = a.r.Ready(); err != nil || old.Begin() != nil || old.Fresh(t.Context()) != nil {
			return false
		}
		a.plug.set(true)
		return a.r.Leading() // else another one led already
	})
	until(t, "another one leads, and has stored something", func() bool {
		_, lead := leader(t, b, c)
		return lead.Store.Commit([]state.Record{jobRecord(1)}) == nil
	})
	if !a.r.Leading() || a.has(2) != 1 {
		t.Fatal("a knows that another one leads: nothing is shown")
	}
	told := make(chan error, 2)
	go func() { told <- old.Fresh(t.Context()) }() // ends when the others say no
	go func() { told <- old.Confirm() }()          // the same
	a.plug.set(false)
	for range 2 {
		if err := <-told; !errors.Is(err, ErrLost) {
			t.Errorf("what a knows is fresh: %v", err)
		}
	}
}

// TestMajority: those count who followed in this term after the moment at which it was asked, and whose word counts.
func TestMajority(t *testing.T) {
	server := func(id raft.ServerID) raft.Server { return raft.Server{ID: id} }
	three := []raft.Server{server("a"), server("b"), server("c")}
	for name, tc := range map[string]struct {
		all  []raft.Server
		last map[raft.ServerID]followed
		want bool
	}{
		"alone":                       {three[:1], nil, true},
		"nobody has answered":         {three, nil, false},
		"one has":                     {three, map[raft.ServerID]followed{"b": {5, 11}}, true},
		"both were asked before":      {three, map[raft.ServerID]followed{"b": {5, 10}, "c": {5, 9}}, false},
		"in another term":             {three, map[raft.ServerID]followed{"b": {4, 11}, "c": {6, 12}}, false},
		"one of five":                 {append(three[:3:3], server("d"), server("e")), map[raft.ServerID]followed{"b": {5, 11}}, false},
		"its word does not count":     {[]raft.Server{three[0], three[1], {ID: "c", Suffrage: raft.Nonvoter}}, map[raft.ServerID]followed{"c": {5, 11}}, false},
		"its own word does not count": {[]raft.Server{{ID: "a", Suffrage: raft.Nonvoter}, three[1], three[2]}, map[raft.ServerID]followed{"b": {5, 11}}, false},
	} {
		e := newExchanges(nil)
		for id, f := range tc.last {
			e.note(id, f)
		}
		if got, _ := e.majority("a", tc.all, followed{5, 10}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	e := newExchanges(nil)
	e.note("b", followed{5, 11})
	e.note("b", followed{5, 7}) // its answer came later
	if ok, _ := e.majority("a", three, followed{5, 10}); !ok {
		t.Error("a slower answer took the place of a newer one")
	}
}

// TestReadsTogether: those who come while a question is out wait for the next one, all for the same; who leaves holds up nobody.
func TestReadsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, answer := 0, make(chan error)
		r := reads{ask: func() error { asked++; return <-answer }}
		told := make(chan error, 100)
		ask := func(ctx context.Context, n int) {
			for range n {
				go func() { told <- r.fresh(ctx) }() // ends with the answer
			}
			synctest.Wait()
		}
		expect := func(n int, want error, questions int) {
			t.Helper()
			synctest.Wait()
			if len(told) != n || asked != questions {
				t.Fatalf("%d were told after %d questions, want %d after %d", len(told), asked, n, questions)
			}
			for range n {
				if err := <-told; !errors.Is(err, want) {
					t.Errorf("told %v, want %v", err, want)
				}
			}
		}
		ask(t.Context(), 1)
		ask(t.Context(), 50)
		gone, leave := context.WithCancel(t.Context())
		ask(gone, 1)
		expect(0, nil, 1)
		leave()
		expect(1, context.Canceled, 1)
		answer <- nil
		expect(1, nil, 2)
		answer <- ErrLost
		expect(50, ErrLost, 2)
		ask(t.Context(), 1)
		expect(0, nil, 3)
		answer <- nil
		expect(1, nil, 3)
	})
}
