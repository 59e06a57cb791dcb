package pki

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

// nodeOf is a node that the authority has signed.
func nodeOf(t *testing.T, a *Authority, c *clock, name string) *NodeTLS {
	t.Helper()
	pair := node(t, a, name)
	return &NodeTLS{Pin: a.Pin(), Now: c.now, Own: func() *tls.Certificate { return pair }}
}

// TestNodesMeet: nodes of one authority take each other by name, and nobody else.
func TestNodesMeet(t *testing.T) {
	c := newClock()
	ours, theirs := open(t, t.TempDir(), c), open(t, t.TempDir(), c)
	_, authority, err := ours.SignLayers(LayersTicket{})
	if err != nil {
		t.Fatal(err)
	}
	_, foreign, err := theirs.SignLayers(LayersTicket{})
	if err != nil {
		t.Fatal(err)
	}
	a, b, stranger := nodeOf(t, ours, c, "a"), nodeOf(t, ours, c, "b"), nodeOf(t, theirs, c, "a")
	for name, tc := range map[string]struct {
		server *tls.Config
		client *NodeTLS
		called string
		by     []byte
		want   string // part of either error
		later  time.Duration
		blind  bool // the client takes anybody
	}{
		"each other":              {server: a.Accept(), client: b, called: "a", by: authority},
		"another name":            {server: a.Accept(), client: b, called: "c", by: authority, want: "it is node a, and not c"},
		"the controller as node":  {server: ours.ServerTLS(), client: b, called: serverName, by: authority, want: "incompatible key usage"},
		"a stranger calls":        {server: a.Accept(), client: stranger, called: "a", by: foreign, want: ErrPin.Error(), blind: true},
		"a stranger is called":    {server: stranger.Accept(), client: b, called: "a", by: authority, want: "certificate"},
		"no certificate":          {server: a.Accept(), client: &NodeTLS{Pin: ours.Pin(), Now: c.now, Own: func() *tls.Certificate { return nil }}, called: "a", by: authority, want: "no certificate yet"},
		"another's authority":     {server: a.Accept(), client: b, called: "a", by: foreign, want: ErrPin.Error()},
		"a certificate that ends": {server: a.Accept(), client: b, called: "a", by: authority, want: "expired", later: leafLife + time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = c.t.Add(tc.later)
			defer func() { c.t = c.t.Add(-tc.later) }()
			client, err := tc.client.Dial(tc.called, tc.by)
			var serverErr, clientErr error
			if tc.blind {
				client.VerifyConnection = nil
			}
			if err == nil {
				serverErr, clientErr = greet(t, tc.server, client)
			}
			said := ""
			for _, err := range []error{err, serverErr, clientErr} {
				if err != nil {
					said += err.Error() + "\n"
				}
			}
			if (said != "") != (tc.want != "") || !strings.Contains(said, tc.want) {
				t.Errorf("got %q, want %q", said, tc.want)
			}
		})
	}
}

// TestLayersTicket: a ticket is for the node that it names, from the controller, and for a while.
func TestLayersTicket(t *testing.T) {
	c := newClock()
	ours, theirs := open(t, t.TempDir(), c), open(t, t.TempDir(), c)
	a, b := nodeOf(t, ours, c, "a"), nodeOf(t, ours, c, "b")
	until := c.t.Add(time.Hour)
	sign := func(by *Authority, node string) (string, []byte) {
		ticket, authority, err := by.SignLayers(LayersTicket{Node: node, Image: "registry/team/box", Until: until})
		if err != nil {
			t.Fatal(err)
		}
		return ticket, authority
	}
	good, authority := sign(ours, "b")
	others, _ := sign(ours, "c")
	foreign, _ := sign(theirs, "b")
	text, signature, _ := strings.Cut(good, ".")
	othersText, _, _ := strings.Cut(others, ".")
	client, err := b.Dial("a", authority)
	if err != nil {
		t.Fatal(err)
	}
	own, err := client.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	state := &tls.ConnectionState{}
	for _, der := range own.Certificate {
		state.PeerCertificates = append(state.PeerCertificates, parsed(t, der))
	}
	for name, tc := range map[string]struct {
		ticket string
		want   string
		later  time.Duration
	}{
		"good":             {ticket: good},
		"another node's":   {ticket: others, want: "is of node c, and b shows it"},
		"another site's":   {ticket: foreign, want: "not the controller's"},
		"changed":          {ticket: othersText + "." + signature, want: "not the controller's"},
		"no signature":     {ticket: text, want: "not the controller's"},
		"none":             {want: "not the controller's"},
		"not to be read":   {ticket: "!." + signature, want: "cannot be read"},
		"over":             {ticket: good, want: "is over", later: time.Hour},
		"signature of old": {ticket: text + ".!", want: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = c.t.Add(tc.later)
			defer func() { c.t = c.t.Add(-tc.later) }()
			got, err := a.Layers(state, tc.ticket)
			if tc.want == "" && (err != nil || got.Image != "registry/team/box") {
				t.Errorf("got %+v, %v", got, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := a.Layers(nil, good); err == nil {
		t.Error("it counts without a certificate")
	}
}

func parsed(t *testing.T, der []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// greet is shake over a connection that has buffers: each side may fail while the other still writes.
func greet(t *testing.T, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan error, 1)
	go func() { // ends with the connection
		c, err := ln.Accept()
		if err == nil {
			_, err = c.Write([]byte("x"))
			c.Close()
		}
		done <- err
	}()
	c, clientErr := tls.Dial("tcp", ln.Addr().String(), client)
	if clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1)) // the client's certificate is judged after its handshake
		c.Close()
	}
	return <-done, clientErr
}

// TestKeyOf: a certificate is of the key that it was asked for with, by name.
func TestKeyOf(t *testing.T) {
	c := newClock()
	shown := nodeOf(t, open(t, t.TempDir(), c), c, "a").Own()
	want, err := KeyID(shown.Leaf.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if got := KeyOf(shown.Leaf); got != want {
		t.Errorf("it is of key %s, and the key is %s", got, want)
	}
}
