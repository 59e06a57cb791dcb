package ctld

import (
	"fmt"
	"net"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
)

// TestIdleConnections: thousands of connections that say nothing are few to the
// controller, and nodes, users of other addresses and root get through.
func TestIdleConnections(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Connections = site.Connections{Total: 256, PerAddress: 20} })
	ann := s.user("ann")
	m := s.joined("n1")
	_, address, err := net.SplitHostPort(s.server.front.lns[1].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var idle []net.Conn
	for i := range 2000 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%4))}}
		c, err := d.Dial("tcp", "127.0.0.1:"+address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	if _, err := m.NodeSync(t.Context(), "n1", &api.SyncRequest{Instance: "i", Boot: "b", InventoryHash: "h", Inventory: &node.Inventory{Hostname: "n1", Cluster: 1, CPUs: 1, MemBytes: 1 << 30, Bridge: true}}); err != nil {
		t.Errorf("a node: %v", err)
	}
	if _, err := ann.Submit(t.Context(), hello(1), ""); err != nil {
		t.Errorf("a user: %v", err)
	}
	if _, err := s.Status(t.Context()); err != nil {
		t.Errorf("root: %v", err)
	}
	open := func() (count int) {
		for _, c := range idle {
			if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			_, err := c.Read(make([]byte, 1))
			if e, ok := err.(net.Error); ok && e.Timeout() {
				count++
			}
		}
		return count
	}
	waitFor(t, "the refused connections are closed", func() bool { return open() <= 256/8+256/32 })
	if got := series(s.scrape(), "gctld_connections_refused_total"); len(got) == 0 {
		t.Error("no refusal was counted")
	}
}

// TestTooManyConnections: who has too many is told so by the next one.
func TestTooManyConnections(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Limits.PerUser.Connections = 3 })
	token := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret
	for i := range 4 {
		c := &client.Client{Address: s.remote(), Token: token}
		defer c.Close()
		_, err := c.Status(t.Context())
		if i < 3 && err != nil || i == 3 && !client.IsCode(err, api.CodeTooMany) {
			t.Errorf("connection %d: %v", i+1, err)
		}
	}
	if got, want := fmt.Sprint(series(s.scrape(), "gctld_connections_refused_total")), `[gctld_connections_refused_total{bound="user"} 1]`; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
}
