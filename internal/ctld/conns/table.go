// Package conns bounds connections, before anybody has said who they are and by
// who they are then. It owns the count of what is open; who somebody is, others
// find out and tell it.
package conns

import (
	"log/slog"
	"net/netip"
	"sync"

	"gbatch/internal/api"
	"gbatch/internal/ctld/notice"
)

// class is how far a connection is known.
type class int

const (
	visitor class = iota // came by the network, and has not said who it is
	user                 // a user's
	trusted              // a node's, an operator's, or root's of this machine
	extra                // above a bound: it is told so, unless it turns out to be trusted
	classes
)

// classNames are the names of the kinds of connections.
var classNames = [classes]string{"visitor", "user", "trusted", "refused"}

// Of all connections, visitors have a part, users most, and at least as much as
// visitors is left for the trusted.
const (
	visitorPart = 8 // one of so many
	userParts   = 6 // of these
)

// Bounds of what no site changes.
const (
	maxExtra    = 256 // connections that wait to be told that there are too many
	extraPart   = 32  // of all, at most one of so many
	extraOfOne  = 16  // of one address or user
	maxOfTrusty = 8192
)

// Bounds of what a site changes, and of the moment. 0: no bound, but of All.
type Bounds struct {
	All        int
	PerAddress int // visitors
	PerUser    func(name string) int

	Unasked bool // nobody is asked yet who they are: visitors have all but what is left for those of this machine
}

// Config is what a table asks of others.
type Config struct {
	Bounds func() Bounds
	Log    *slog.Logger
}

// Table is the connections that are open. Create it with New.
type Table struct {
	Config
	refusals notice.Notice

	mu      sync.Mutex
	opened  func(class string, n int)
	refused func(why string)
	last    uint64 // number of the last connection
	open    [classes]int
	owners  map[owner]map[*Conn]struct{} // of those that have connections
}

// owner is who has connections of a class: an address, or a user by number or name.
type owner struct {
	class class
	name  string
}

// New has no connections.
func New(c Config) *Table {
	return &Table{Config: c, opened: func(string, int) {}, refused: func(string) {}, owners: map[owner]map[*Conn]struct{}{},
		refusals: notice.Notice{Log: c.Log, Level: slog.LevelWarn, Text: "connections are refused: there are too many"}}
}

// Tell has others be told of so many more connections of a class, first of those that are open, and of ones that are refused.
func (t *Table) Tell(opened func(class string, n int), refused func(why string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened, t.refused = opened, refused
	for class, n := range t.open {
		opened(classNames[class], n)
	}
}

// admit finds the place of a new connection, and who has to go for it. ok is false
// if there is none.
func (t *Table) admit(c *Conn) (put *Conn, ok bool) {
	b := t.Bounds()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	c.number = t.last
	why := ""
	switch {
	case t.total() >= b.All:
		why = "all"
	case c.local && c.uid == 0:
		t.put(c, owner{trusted, "root"})
		return nil, true
	case c.local:
		o := owner{user, c.from}
		if why = t.room(o, b, b.PerUser("")); why == "" {
			t.put(c, o)
			return nil, true
		}
	default:
		o := owner{visitor, c.from}
		if why = t.room(o, b, b.PerAddress); why == "all" {
			put = t.oldest(len(t.owners[o]))
		}
		if why == "" || put != nil {
			if put != nil {
				t.remove(put)
			}
			t.put(c, o)
			return put, true
		}
	}
	t.refuse(why, c.from)
	if o := (owner{extra, c.from}); why != "all" || t.total() < b.All {
		if t.open[extra] < min(maxExtra, b.All/extraPart) && len(t.owners[o]) < extraOfOne {
			t.put(c, o)
			return nil, true
		}
	}
	return nil, false
}

// room says what speaks against one more of an owner; empty: nothing.
func (t *Table) room(o owner, b Bounds, own int) string {
	most := b.All
	switch o.class {
	case visitor:
		most = b.All / visitorPart
		if b.Unasked {
			most = b.All - most
		}
	case user:
		most = b.All * userParts / visitorPart
	}
	switch {
	case own > 0 && len(t.owners[o]) >= own && o.class == visitor:
		return "address"
	case own > 0 && len(t.owners[o]) >= own:
		return "user"
	case t.open[o.class] >= most:
		return "all"
	}
	return ""
}

// oldest is the first of the visitors of the address with most of them, if that
// has more than n: who opens many puts out their own.
func (t *Table) oldest(n int) (first *Conn) {
	var from map[*Conn]struct{}
	for o, list := range t.owners { // if several have as many, any of them
		if o.class == visitor && len(list) > max(n, len(from)) {
			from = list
		}
	}
	for c := range from {
		if first == nil || c.number < first.number {
			first = c
		}
	}
	return first
}

func (t *Table) total() (n int) {
	for _, k := range t.open {
		n += k
	}
	return n
}

func (t *Table) put(c *Conn, o owner) {
	c.owner, c.in = o, true
	if t.owners[o] == nil {
		t.owners[o] = map[*Conn]struct{}{}
	}
	t.owners[o][c] = struct{}{}
	t.open[o.class]++
	t.opened(classNames[o.class], +1)
}

func (t *Table) remove(c *Conn) {
	if !c.in {
		return
	}
	c.in = false
	o := c.owner
	if delete(t.owners[o], c); len(t.owners[o]) == 0 {
		delete(t.owners, o)
	}
	t.open[o.class]--
	t.opened(classNames[o.class], -1)
}

func (t *Table) refuse(why, from string) {
	t.refused(why)
	t.refusals.Happened("reason", why, "from", from)
}

// Who is somebody who has said who they are.
type Who struct {
	Name    string
	Trusted bool // a node, an operator or an admin
}

// Known takes in who a connection is: the first who says so on it. The error is
// that they have too many; the connection is to be closed then.
func (t *Table) Known(c *Conn, w Who) *api.Error {
	if c == nil {
		return nil
	}
	b := t.Bounds()
	t.mu.Lock()
	defer t.mu.Unlock()
	o, most := owner{user, "user " + w.Name}, b.PerUser(w.Name)
	switch {
	case !c.in || c.owner.class == user || c.owner.class == trusted:
		return nil
	case w.Trusted:
		o, most = owner{trusted, w.Name}, maxOfTrusty
	case c.local:
		o.name = c.from
	}
	why := t.room(o, b, most)
	if why == "" {
		t.remove(c)
		t.put(c, o)
		return nil
	}
	if c.owner.class != extra {
		t.refuse(why, w.Name)
	}
	if why == "user" {
		return api.Errorf(api.CodeTooMany, "%s has %d of at most %d connections (limits.perUser.connections)", w.Name, len(t.owners[o]), most).
			WithHint("end commands that wait or follow; many of them can share one stream of events")
	}
	return api.Errorf(api.CodeUnavailable, "the controller has as many connections as it can have (connections.total)").
		WithHint("try again in a few seconds")
}

// Stranger says that a connection is one of those who have not said who they are,
// which is not to be kept when its request is answered. One that requests share, as by
// HTTP/2, is kept until it is idle for long, unless it is above a bound: its end would
// break off those that are under way, as the files of the page are.
func (t *Table) Stranger(c *Conn, shared bool) bool {
	if c == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.owner.class == extra || c.owner.class == visitor && !shared
}

// AddressOf is whose connections count together: an IPv4 address, or the 64 bits
// of an IPv6 address that one machine has.
func AddressOf(text string) string {
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return text
	}
	a := ap.Addr().Unmap().WithZone("")
	if p, err := a.Prefix(64); a.Is6() && err == nil {
		return p.String()
	}
	return a.String()
}
