package conns

import (
	"fmt"
	"log/slog"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/api"
)

// world is a table without a listener.
type world struct {
	*Table
	refused map[string]int
}

// newWorld has a table for 64 connections: 8 of visitors, 48 of users, 2 that are
// told that there are too many, and so 6 at least for the trusted.
func newWorld() *world {
	w := &world{refused: map[string]int{}}
	w.Table = New(Config{
		Bounds: func() Bounds {
			return Bounds{All: 64, PerAddress: 4, PerUser: func(name string) int { return map[string]int{"bob": 40}[name] + 20 }}
		},
		Log: slog.New(slog.DiscardHandler),
	})
	w.Tell(func(string, int) {}, func(why string) { w.refused[why]++ })
	return w
}

// come is a new connection; nil: it was closed at once.
func (w *world) come(from string) *Conn {
	here, _ := net.Pipe()
	c := &Conn{Conn: here, table: w.Table, from: from}
	if _, err := fmt.Sscanf(from, "uid %d", &c.uid); err == nil {
		c.local = true
	}
	out, ok := w.admit(c)
	if out != nil {
		_ = out.Close()
	}
	if !ok {
		return nil
	}
	return c
}

func (w *world) classes() map[string]int {
	out := map[string]int{}
	for i, n := range w.open {
		if n > 0 {
			out[classNames[i]] = n
		}
	}
	return out
}

func (w *world) want(t *testing.T, step string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, w.classes()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", step, diff)
	}
}

// TestIdleVisitors: who opens connections without end and says nothing holds a few,
// whatever the number of addresses, and others come in beside.
func TestIdleVisitors(t *testing.T) {
	w := newWorld()
	for range 1000 {
		w.come("192.0.2.1")
	}
	w.want(t, "one address", map[string]int{"visitor": 4, "refused": 2})
	for i := range 1000 {
		w.come(fmt.Sprint("192.0.2.", 2+i%2))
	}
	w.want(t, "three addresses", map[string]int{"visitor": 8, "refused": 2})
	node := w.come("198.51.100.7")
	if node == nil || node.owner.class != visitor {
		t.Fatal("another address was not let in")
	}
	for range 1000 {
		w.come("192.0.2.1")
	}
	if !node.in {
		t.Error("it was put out by those who have more")
	}
	if err := w.Known(node, Who{Name: "node n1", Trusted: true}); err != nil {
		t.Errorf("a node: %v", err)
	}
	w.want(t, "a node", map[string]int{"visitor": 7, "refused": 2, "trusted": 1})
	if w.refused["address"] == 0 {
		t.Errorf("refused: %v", w.refused)
	}
}

// TestUnasked: where nobody is asked yet who they are, all nodes may wait at once, and root comes in beside.
func TestUnasked(t *testing.T) {
	w := newWorld()
	asked := w.Bounds
	w.Bounds = func() Bounds {
		b := asked()
		b.PerAddress, b.Unasked = 0, true
		return b
	}
	var nodes []*Conn
	for i := range 56 {
		nodes = append(nodes, w.come(fmt.Sprint("192.0.2.", i)))
	}
	w.come("uid 0")
	w.want(t, "unasked", map[string]int{"visitor": 56, "trusted": 1})
	w.Bounds = asked
	for i, c := range nodes {
		if err := w.Known(c, Who{Name: fmt.Sprint("node ", i), Trusted: true}); err != nil || !c.in {
			t.Errorf("node %d: %v", i, err)
		}
	}
	w.want(t, "asked", map[string]int{"trusted": 57})
}

// TestUsersLeaveRoom: users have no more than their bound, and all of them together
// leave room for root, nodes and operators.
func TestUsersLeaveRoom(t *testing.T) {
	w := newWorld()
	for range 100 {
		w.come("uid 1001")
	}
	w.want(t, "one user", map[string]int{"user": 20, "refused": 2})
	for n := range 100 {
		w.come(fmt.Sprint("uid ", 2000+n))
	}
	w.want(t, "all users", map[string]int{"user": 48, "refused": 2})
	if w.come("uid 1001") != nil {
		t.Error("there was room for one more to be told")
	}
	for range 4 {
		if w.come("uid 0") == nil {
			t.Error("root was not let in")
		}
	}
	op := w.come("192.0.2.1")
	if e := w.Known(op, Who{Name: "ann"}); e == nil || e.Status != 503 || !w.Stranger(op, false) || w.Stranger(op, true) {
		t.Errorf("a user when all places of users are taken: %v", e)
	}
	if e := w.Known(op, Who{Name: "op", Trusted: true}); e != nil || w.Stranger(op, false) {
		t.Errorf("an operator: %v", e)
	}
	w.want(t, "at last", map[string]int{"user": 48, "refused": 2, "trusted": 5})
}

// TestTooManyOfAUser: above the bound a connection is let in to be told so, with the
// numbers, and one of a user whose bound is higher counts as theirs.
func TestTooManyOfAUser(t *testing.T) {
	w := newWorld()
	var last *Conn
	for range 21 {
		last = w.come("uid 1001")
	}
	e := w.Known(last, Who{Name: "ann"})
	want := api.Errorf(api.CodeTooMany, "ann has 20 of at most 20 connections (limits.perUser.connections)").
		WithHint("end commands that wait or follow; many of them can share one stream of events")
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !w.Stranger(last, true) {
		t.Error("what is above a bound is kept")
	}
	if e := w.Known(last, Who{Name: "bob"}); e != nil || w.Stranger(last, true) {
		t.Errorf("one who may have 60: %v", e)
	}
	w.want(t, "then", map[string]int{"user": 21})
	for range 20 {
		c := w.come("192.0.2.1")
		if e := w.Known(c, Who{Name: "eve"}); e != nil {
			t.Fatal(e)
		}
	}
	w.want(t, "by the network", map[string]int{"user": 41})
	_ = last.Close()
	_ = last.Close()
	w.want(t, "closed twice", map[string]int{"user": 40})
}

// TestAnyConnections: counts are right after any history, and bounds hold.
func TestAnyConnections(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		var list []*Conn
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0, 1:
				if c := w.come(rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "uid 0", "uid 5", "uid 6", "uid 7"}).Draw(rt, "from")); c != nil {
					list = append(list, c)
				}
			case 2:
				if len(list) > 0 {
					w.Known(rapid.SampledFrom(list).Draw(rt, "known"), Who{Name: rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "name"), Trusted: rapid.Bool().Draw(rt, "trusted")})
				}
			case 3:
				if len(list) > 0 {
					_ = rapid.SampledFrom(list).Draw(rt, "closed").Close()
				}
			}
			var open [classes]int
			for o, of := range w.owners {
				open[o.class] += len(of)
				if most := map[class]int{visitor: 4, user: 60, extra: 16}[o.class]; most > 0 && len(of) > most {
					rt.Fatalf("%v has %d", o, len(of))
				}
			}
			if open != w.open || w.total() > 64 || open[visitor] > 8 || open[user] > 48 || open[extra] > 2 {
				rt.Fatalf("counted %v, kept %v", open, w.open)
			}
		}
	})
}

func TestAddressOf(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1:77": "192.0.2.1", "[::ffff:192.0.2.1]:77": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:77": "2001:db8:1:2::/64", "pipe": "pipe",
	} {
		if got := AddressOf(text); got != want {
			t.Errorf("%s counts as %s, want %s", text, got, want)
		}
	}
}
