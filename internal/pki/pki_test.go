package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock is a time that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func open(t *testing.T, dir string, c *clock) *Authority {
	t.Helper()
	a, err := Open(dir, c.now)
	if err != nil {
		t.Fatal(err)
	}
	a.Secret = []byte("of the site")
	return a
}

// shake makes a connection between the two sides and gives both outcomes.
func shake(t *testing.T, server, client *tls.Config) (names []string, serverErr, clientErr error) {
	t.Helper()
	a, b := net.Pipe()
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() { // ended below
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x")) // the client's certificate is judged after its handshake
		}
		if err != nil {
			a.Close()
		}
		done <- err
	}()
	clientErr = c.Handshake()
	if clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1))
	}
	b.Close()
	serverErr = <-done
	for _, chain := range s.ConnectionState().VerifiedChains {
		names = append(names, chain[0].Subject.CommonName)
	}
	return names, serverErr, clientErr
}

func node(t testing.TB, a *Authority, name string) *tls.Certificate {
	t.Helper()
	key, err := OpenKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := Request(key)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := a.SignNode(name, req)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := Pair(text, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestPin(t *testing.T) {
	c := newClock()
	a, other := open(t, t.TempDir(), c), open(t, t.TempDir(), c)
	if a.Pin() == other.Pin() || CheckPin(a.Pin()) != nil {
		t.Fatalf("pins %s and %s", a.Pin(), other.Pin())
	}
	if _, serr, cerr := shake(t, a.ServerTLS(), ClientTLS(a.Pin(), c.now, nil)); serr != nil || cerr != nil {
		t.Errorf("the pinned controller: %v, %v", serr, cerr)
	}
	if _, _, err := shake(t, other.ServerTLS(), ClientTLS(a.Pin(), c.now, nil)); !errors.Is(err, ErrPin) {
		t.Errorf("another controller: %v", err)
	}
	// Somebody who shows our authority's certificate behind their own.
	fake := *other.server
	fake.Certificate = [][]byte{other.server.Certificate[0], a.ca.Raw}
	if _, _, err := shake(t, &tls.Config{Certificates: []tls.Certificate{fake}}, ClientTLS(a.Pin(), c.now, nil)); err == nil {
		t.Error("a certificate that the pinned authority did not sign was taken")
	}
	// A node that plays controller with the certificate that it has.
	n := node(t, a, serverName)
	n.Certificate = append(n.Certificate, a.ca.Raw)
	if _, _, err := shake(t, &tls.Config{Certificates: []tls.Certificate{*n}}, ClientTLS(a.Pin(), c.now, nil)); err == nil {
		t.Error("a node's certificate was taken for the controller's")
	}
	for _, pin := range []string{"", "sha256=", "sha256=abc", "md5=" + strings.Repeat("A", 43), strings.TrimPrefix(a.Pin(), "sha256=")} {
		if CheckPin(pin) == nil {
			t.Errorf("pin %q was taken", pin)
		}
	}
}

// TestRenewal: the server's certificate is replaced while it runs, the
// authority's at some start, and pins and nodes' certificates hold on.
func TestRenewal(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	a := open(t, dir, c)
	pin, first := a.Pin(), a.server.Leaf.SerialNumber
	if b := open(t, dir, c); b.server.Leaf.SerialNumber.Cmp(first) != 0 || b.Pin() != pin {
		t.Error("another start made another certificate")
	}
	c.t = c.t.Add(leafLife - leafRenew + time.Hour)
	if _, serr, cerr := shake(t, a.ServerTLS(), ClientTLS(pin, c.now, nil)); serr != nil || cerr != nil {
		t.Fatal(serr, cerr)
	}
	if a.server.Leaf.SerialNumber.Cmp(first) == 0 {
		t.Error("the certificate was not renewed before its end")
	}
	n := node(t, a, "gpu1")
	oldCA := a.ca.SerialNumber
	c.t = a.ca.NotAfter.Add(-time.Hour)
	if _, serr, cerr := shake(t, a.ServerTLS(), ClientTLS(pin, c.now, nil)); serr != nil || cerr != nil {
		t.Fatal(serr, cerr)
	}
	if a.Pin() != pin || a.ca.SerialNumber.Cmp(oldCA) == 0 {
		t.Error("the authority's certificate was not renewed, or with another key")
	}
	c.t = n.Leaf.NotAfter.Add(-time.Hour)
	if names, serr, _ := shake(t, a.ServerTLS(), ClientTLS(pin, c.now, func() *tls.Certificate { return n })); serr == nil && len(names) == 1 && names[0] != "gpu1" {
		t.Errorf("the server took the node for %v, %v", names, serr)
	}
	for _, f := range []string{caKeyFile, serverFile} {
		if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, st.Mode(), err)
		}
	}
}

func TestNodeCertificates(t *testing.T) {
	c := newClock()
	a, other := open(t, t.TempDir(), c), open(t, t.TempDir(), c)
	show := func(n *tls.Certificate) ([]string, error, error) {
		return shake(t, a.ServerTLS(), ClientTLS(a.Pin(), c.now, func() *tls.Certificate { return n }))
	}
	n := node(t, a, "gpu1")
	if names, serr, cerr := show(n); serr != nil || cerr != nil || len(names) != 1 || names[0] != "gpu1" {
		t.Errorf("a node's certificate: %v, %v, %v", names, serr, cerr)
	}
	if names, serr, _ := show(nil); serr != nil || len(names) != 0 {
		t.Errorf("no certificate: %v, %v", names, serr)
	}
	if _, serr, _ := show(node(t, other, "gpu1")); serr == nil {
		t.Error("a certificate of another controller was taken")
	}
	if _, serr, _ := show(a.server); serr == nil {
		t.Error("the controller's own certificate was taken for a node's")
	}
	c.t = n.Leaf.NotAfter.Add(time.Hour)
	if _, serr, _ := show(n); serr == nil {
		t.Error("an expired certificate was taken")
	}
}

func TestBadRequests(t *testing.T) {
	a := open(t, t.TempDir(), newClock())
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), weak)
	if err != nil {
		t.Fatal(err)
	}
	key, err := OpenKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	good, err := Request(key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(good)
	block.Bytes[len(block.Bytes)-1] ^= 1
	for name, req := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "other_key": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		"other_type": bytes.ReplaceAll(good, []byte("CERTIFICATE REQUEST"), []byte("CERTIFICATE")),
		"broken":     pem.EncodeToMemory(block),
	} {
		if _, _, err := a.SignNode("gpu1", req); err == nil {
			t.Errorf("%s: it was signed", name)
		}
	}
}

// TestDamagedCertificates changes each byte of the certificates' files in turn: each that is not whole is made
// anew, and the pin is what it was.
func TestDamagedCertificates(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	pin := open(t, dir, c).Pin()
	for _, name := range []string{caFile, serverFile} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := range whole {
			changed := bytes.Clone(whole)
			changed[at] ^= 1
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			a := open(t, dir, c)
			if err := errors.Join(a.ca.CheckSignatureFrom(a.ca), a.server.Leaf.CheckSignatureFrom(a.ca)); err != nil || a.Pin() != pin {
				t.Errorf("byte %d of %s: pin %s, was %s, %v", at, name, a.Pin(), pin, err)
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMembers: controllers whose clocks are hours apart, or whose certificate has run out while they
// were away, know each other. One of another site is refused, and one whose clock is a year off.
func TestMembers(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	here := newClock()
	one := open(t, a, here)
	if err := os.CopyFS(b, os.DirFS(a)); err != nil { // they share the authority
		t.Fatal(err)
	}
	for _, test := range []struct {
		name       string
		here, they time.Duration // how far the clocks have come
		other      bool
		refused    bool
	}{
		{name: "alike"},
		{name: "an hour ahead", they: time.Hour},
		{name: "an hour behind", they: -time.Hour},
		{name: "certificates ran out", here: 3 * 365 * 24 * time.Hour, they: 3 * 365 * 24 * time.Hour},
		{name: "certificates ran out, and an hour apart", here: 6 * 365 * 24 * time.Hour, they: 6*365*24*time.Hour + time.Hour},
		{name: "a year apart", here: 8 * 365 * 24 * time.Hour, they: 7 * 365 * 24 * time.Hour, refused: true},
		{name: "another site", other: true, refused: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			there := newClock()
			dir := b
			if test.other {
				dir = t.TempDir()
			}
			two := open(t, dir, there)
			here.t, there.t = newClock().t.Add(test.here), there.t.Add(test.they)
			for way, both := range map[string][2]*Authority{"here to there": {one, two}, "there to here": {two, one}} {
				_, dial := both[0].MemberTLS()
				accept, _ := both[1].MemberTLS()
				_, serr, cerr := shake(t, accept, dial)
				if refused := serr != nil || cerr != nil; refused != test.refused {
					t.Errorf("%s: %v, %v", way, serr, cerr)
				}
			}
		})
	}
}

// TestServerNames: the server's certificate has the names by which browsers come, also
// when those have changed.
func TestServerNames(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	a := open(t, dir, c)
	a.Names = func() []string { return []string{"head.example.org", "192.0.2.1"} }
	leaf := func() *x509.Certificate {
		t.Helper()
		cfg, err := a.ServerTLS().GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Certificates[0].Leaf
	}
	for _, host := range []string{"gctld", "head.example.org", "192.0.2.1"} {
		if err := leaf().VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	first := leaf().SerialNumber
	if a = open(t, dir, c); leaf().SerialNumber.Cmp(first) != 0 {
		t.Error("the certificate was made anew at a start")
	}
	a.Names = func() []string { return []string{"head.example.org", "*.jobs.example.org"} }
	if err := leaf().VerifyHostname("8888-0-1.jobs.example.org"); err != nil {
		t.Error(err)
	}
}
