package pki

import (
	"crypto/tls"
	"net"
	"testing"
	"time"
)

// resume connects the two sides once, and says whether they went on from an earlier session and who the client is.
func resume(t testing.TB, server, client *tls.Config) (resumed bool, name string, err error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	a, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() { // ended below
		_, err := s.Write([]byte("x")) // with the ticket before it
		done <- err
	}()
	if _, err = c.Read(make([]byte, 1)); err != nil {
		_ = b.Close()
	}
	if theirs := <-done; err == nil {
		err = theirs
	}
	state := s.ConnectionState()
	if len(state.VerifiedChains) > 0 {
		name = state.VerifiedChains[0][0].Subject.CommonName
	}
	return state.DidResume, name, err
}

// TestResumed: a node goes on from its session with one controller at another one of the site, as the same node; not with another
// certificate, not after days, and not when its certificate has run out.
func TestResumed(t *testing.T) {
	dir, clock := t.TempDir(), newClock()
	one, other := open(t, dir, clock), open(t, dir, clock)
	own := node(t, one, "gpu1")
	client := ClientTLS(one.Pin(), clock.now, func() *tls.Certificate { return own })
	if Resuming(client) != nil {
		t.Error("goes on from nothing")
	}
	for _, step := range []struct {
		name    string
		at      *Authority
		before  func()
		resumed bool
		node    string
	}{
		{"first", one, func() {}, false, "gpu1"},
		{"again", one, func() {}, true, "gpu1"},
		{"at the other controller", other, func() {}, true, "gpu1"},
		{"a day later", other, func() { clock.t = clock.t.Add(23 * time.Hour) }, true, "gpu1"},
		{"with another certificate", one, func() { own = node(t, one, "gpu2") }, false, "gpu2"},
		{"after three days", other, func() { clock.t = clock.t.Add(72 * time.Hour) }, false, "gpu2"},
	} {
		step.before()
		resumed, node, err := resume(t, step.at.ServerTLS(), client)
		if err != nil || resumed != step.resumed || node != step.node {
			t.Errorf("%s: resumed %t as %s, %v; want %t as %s", step.name, resumed, node, err, step.resumed, step.node)
		}
	}
	t.Run("by X25519 alone", func(t *testing.T) {
		again := Resuming(client)
		if again == nil {
			t.Fatal("there is no session")
		}
		if resumed, node, err := resume(t, one.ServerTLS(), again); !resumed || node != "gpu2" || err != nil {
			t.Errorf("resumed %t as %s, %v", resumed, node, err)
		}
		other := open(t, dir, clock)
		other.Secret = []byte("of another controller")
		if resumed, _, err := resume(t, other.ServerTLS(), again); resumed || err != nil {
			t.Errorf("with another secret: resumed %t, %v", resumed, err)
		}
	})
	t.Run("keys follow from both", func(t *testing.T) {
		seen := map[[32]byte]string{}
		for name, a := range map[string]*Authority{"this": one, "another authority": open(t, t.TempDir(), clock), "another secret": {dir: dir, now: clock.now, key: one.key, Secret: []byte("another")}} {
			keys, err := a.ticketKeys()
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				if other := seen[k]; other != "" {
					t.Errorf("%s has a key of %s", name, other)
				}
				seen[k] = name
			}
		}
	})
	t.Run("without a secret", func(t *testing.T) {
		none := open(t, dir, clock)
		none.Secret = nil
		client := ClientTLS(none.Pin(), clock.now, nil)
		for range 2 {
			if resumed, _, err := resume(t, none.ServerTLS(), client); resumed || err != nil {
				t.Errorf("resumed %t, %v", resumed, err)
			}
		}
	})
	t.Run("another site's", func(t *testing.T) {
		if resumed, _, err := resume(t, open(t, t.TempDir(), clock).ServerTLS(), client); resumed || err == nil {
			t.Errorf("resumed %t, %v", resumed, err)
		}
	})
}

// BenchmarkHandshake is what both sides compute together.
func BenchmarkHandshake(b *testing.B) {
	a, err := Open(b.TempDir(), time.Now)
	if err != nil {
		b.Fatal(err)
	}
	a.Secret = []byte("of the site")
	own := node(b, a, "gpu1")
	for _, how := range []string{"whole", "resumed with ML-KEM", "resumed"} {
		b.Run(how, func(b *testing.B) {
			client := ClientTLS(a.Pin(), time.Now, func() *tls.Certificate { return own })
			for b.Loop() {
				if how == "whole" {
					client = ClientTLS(a.Pin(), time.Now, func() *tls.Certificate { return own })
				}
				by := client
				if again := Resuming(client); again != nil && how == "resumed" {
					by = again
				}
				if _, _, err := resume(b, a.ServerTLS(), by); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
