package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"
)

// TestMembersTakeNoOthers: where controllers talk among themselves nobody is taken who
// has no controller's certificate, whatever is shown, and whoever listens at a
// controller's address is told nothing.
func TestMembersTakeNoOthers(t *testing.T) {
	c := newClock()
	a := open(t, t.TempDir(), c)
	if serr, cerr := meet(t, first(a.MemberTLS()), second(a.MemberTLS())); serr != nil || cerr != nil {
		t.Fatalf("a controller: %v, %v", serr, cerr)
	}
	named := node(t, a, serverName)
	forged := selfSigned(t, c.now())
	for name, shown := range map[string]*tls.Certificate{
		"nobody":                            nil,
		"a node":                            node(t, a, "gpu1"),
		"a node called as a controller":     named,
		"a node with the authority's":       {Certificate: [][]byte{named.Certificate[0], a.ca.Raw}, PrivateKey: named.PrivateKey},
		"a controller's made by itself":     forged,
		"the same with the authority's":     {Certificate: [][]byte{forged.Certificate[0], a.ca.Raw}, PrivateKey: forged.PrivateKey},
		"the authority's with a forged key": {Certificate: [][]byte{a.ca.Raw, a.ca.Raw}, PrivateKey: forged.PrivateKey},
		"a controller's of another site":    open(t, t.TempDir(), c).server,
	} {
		t.Run(name, func(t *testing.T) {
			accept, dial := a.MemberTLS()
			asks := dial.Clone()
			asks.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if shown == nil {
					return new(tls.Certificate), nil
				}
				return shown, nil
			}
			if serr, _ := meet(t, accept, asks); serr == nil {
				t.Error("it was taken for a controller")
			}
			if shown == nil {
				return
			}
			answers := accept.Clone()
			answers.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return shown, nil }
			if _, cerr := meet(t, answers, dial); cerr == nil {
				t.Error("a controller spoke to it")
			}
		})
	}
}

// meet makes a connection between the two sides over TCP, where both may speak at once,
// and gives both outcomes.
func meet(t *testing.T, accept, dial *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", accept)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan error, 1)
	go func() { // waited for below
		c, err := ln.Accept()
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		done <- err
	}()
	raw, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, dial)
	if clientErr = c.Handshake(); clientErr == nil {
		_, _ = c.Write([]byte("x")) // the server says what came of it
	}
	raw.Close()
	return <-done, clientErr
}

func first(accept, _ *tls.Config) *tls.Config { return accept }
func second(_, dial *tls.Config) *tls.Config  { return dial }

// selfSigned is a certificate that says what a controller's does.
func selfSigned(t *testing.T, now time.Time) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, text, text, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
