// Package pki is a site's own certificate authority: the controller makes it
// at its first start, shows certificates of it, and signs the nodes' keys. The
// other side knows it by its pin, the hash of the authority's public key, and
// needs no file and no name of the machine.
//
// It holds keys and certificates, and nothing of who may do what.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gbatch/oci/atomicfile"
)

// Names of files below the authority's directory.
const (
	caFile     = "ca.crt"
	caKeyFile  = "ca.key"
	serverFile = "server.pem" // certificate and key
)

// How long certificates hold, and how long before their end they are replaced.
// All begin a day early: clocks may differ by that much.
const (
	caLife, caRenew     = 10 * 365 * 24 * time.Hour, 2 * 365 * 24 * time.Hour
	leafLife, leafRenew = 90 * 24 * time.Hour, 30 * 24 * time.Hour
	early               = 24 * time.Hour
)

// serverName is the name in every controller's certificate. The pin says which
// controller it is, so that daemons and commands need no other; browsers do.
const serverName = "gctld"

// Authority signs. Open makes one; it is safe for concurrent use.
type Authority struct {
	dir string
	now func() time.Time
	key crypto.Signer

	// Secret is what all controllers of the site know and nobody else. Nil: no connection goes on from the session of an earlier one.
	Secret []byte

	// Names gives the names and addresses by which browsers come to the server: its
	// certificate has them. One that begins with *. is of all below it. Nil: as they are.
	Names func() []string

	mu     sync.Mutex
	ca     *x509.Certificate
	server *tls.Certificate
	serves serves
}

// Exists says whether a directory has an authority.
func Exists(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, caKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Open reads the authority in dir, or makes it there. The key of the authority
// never changes; its certificate and the server's are renewed in time.
func Open(dir string, now func() time.Time) (*Authority, error) {
	a := &Authority{dir: dir, now: now}
	var err error
	if a.key, err = OpenKey(filepath.Join(dir, caKeyFile)); err != nil {
		return nil, fmt.Errorf("key of the certificate authority: %w", err)
	}
	if err := a.Renew(); err != nil {
		return nil, err
	}
	return a, nil
}

// named says whether a certificate has the server's names.
func (a *Authority) named(c *x509.Certificate) bool {
	return a.Names == nil || !slices.ContainsFunc(a.Names(), func(name string) bool {
		if ip := net.ParseIP(name); ip != nil {
			return !slices.ContainsFunc(c.IPAddresses, ip.Equal)
		}
		return !slices.Contains(c.DNSNames, name)
	})
}

// Pin names the authority: the SHA-256 of its public key.
func (a *Authority) Pin() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return pinOf(a.ca)
}

// Expiry is until when the certificates of the authority and of the controller hold.
func (a *Authority) Expiry() (authority, controller time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ca.NotAfter, a.server.Leaf.NotAfter
}

// Renew replaces what is missing, damaged or near its end. A handshake does so
// too, but has nobody to tell of an error.
func (a *Authority) Renew() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.renewLocked()
}

func (a *Authority) renewLocked() error {
	if a.ca == nil {
		a.ca, _ = readCertificate(filepath.Join(a.dir, caFile))
	}
	if a.ca == nil || a.ca.CheckSignatureFrom(a.ca) != nil || !publicEqual(a.ca.PublicKey, a.key.Public()) || a.now().After(a.ca.NotAfter.Add(-caRenew)) {
		if err := a.makeCA(); err != nil {
			return fmt.Errorf("make certificate of the authority: %w", err)
		}
	}
	path := filepath.Join(a.dir, serverFile)
	if a.server == nil {
		if c, err := tls.LoadX509KeyPair(path, path); err == nil {
			a.server = &c
		}
	}
	if a.server == nil || a.now().After(a.server.Leaf.NotAfter.Add(-leafRenew)) || a.now().Before(a.server.Leaf.NotBefore) ||
		a.server.Leaf.CheckSignatureFrom(a.ca) != nil || !a.named(a.server.Leaf) {
		if err := a.makeServer(path); err != nil {
			return fmt.Errorf("make certificate of the controller: %w", err)
		}
	}
	return nil
}

func (a *Authority) makeCA() error {
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "gbatch"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := a.sign(t, t, a.key.Public(), caLife)
	if err != nil {
		return err
	}
	if a.ca, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	return atomicfile.WriteReadable(filepath.Join(a.dir, caFile), certificatePEM(der))
}

func (a *Authority) makeServer(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if a.Names != nil {
		for _, name := range a.Names() {
			if ip := net.ParseIP(name); ip != nil {
				t.IPAddresses = append(t.IPAddresses, ip)
			} else {
				t.DNSNames = append(t.DNSNames, name)
			}
		}
	}
	der, err := a.sign(t, a.ca, key.Public(), leafLife)
	if err != nil {
		return err
	}
	keyText, err := keyPEM(key)
	if err != nil {
		return err
	}
	text := append(certificatePEM(der), keyText...)
	if err := atomicfile.WriteDurable(path, text); err != nil {
		return err
	}
	c, err := tls.X509KeyPair(text, text)
	a.server = &c
	return err
}

// sign fills in what all certificates have.
func (a *Authority) sign(t, parent *x509.Certificate, public crypto.PublicKey, life time.Duration) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	t.SerialNumber = serial
	t.NotBefore, t.NotAfter = a.now().Add(-early), a.now().Add(life)
	return x509.CreateCertificate(rand.Reader, t, parent, public, a.key)
}

// protocols are those of the controller's side: browsers take the first, in which all
// tabs share a connection, where of the other six are all that they open. What becomes a
// two-way stream takes its connection over, and asks for the other.
var protocols = []string{"h2", "http/1.1"}

// ServerTLS is the controller's side of connections: it shows its certificate,
// and takes none or one of a node.
func (a *Authority) ServerTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.servesLocked()
		},
	}
}

// servesFor is how long what connections are made by is used again: to make it takes as long as all else that the controller
// computes for one.
const servesFor = time.Minute

// serves is what connections are made by for a while.
type serves struct {
	config *tls.Config
	server *tls.Certificate
	from   time.Time
}

func (a *Authority) servesLocked() (*tls.Config, error) {
	now, s := a.now(), a.serves
	if s.config != nil && s.server == a.server && a.named(a.server.Leaf) && !now.Before(s.from) && now.Before(s.from.Add(servesFor)) {
		return s.config, nil
	}
	if err := a.renewLocked(); err != nil && a.server == nil {
		return nil, err
	}
	shown := *a.server
	shown.Certificate = [][]byte{a.server.Certificate[0], a.ca.Raw} // the other side looks for the pin
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, Certificates: []tls.Certificate{shown},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: poolOf(a.ca), Time: a.now,
	}
	if c.SessionTicketsDisabled = a.Secret == nil; !c.SessionTicketsDisabled {
		keys, err := a.ticketKeys()
		if err != nil {
			return nil, err
		}
		c.SetSessionTicketKeys(keys)
	}
	a.serves = serves{c, a.server, now}
	return c, nil
}

// MemberTLS is both sides of connections among controllers of one authority: each shows a
// controller's certificate of it and takes nothing else.
func (a *Authority) MemberTLS() (accept, dial *tls.Config) {
	own := func() (*tls.Certificate, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if err := a.renewLocked(); err != nil && a.server == nil {
			return nil, err
		}
		shown := *a.server
		shown.Certificate = [][]byte{a.server.Certificate[0], a.ca.Raw} // the other side looks for the pin
		return &shown, nil
	}
	check := func(s tls.ConnectionState) error { return verify(s.PeerCertificates, a.Pin(), a.now()) }
	accept = &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{AskProtocol, CopyProtocol, memberProtocol}, Time: a.now, ClientAuth: tls.RequireAnyClientCert, VerifyConnection: check,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own() },
	}
	dial = &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{memberProtocol}, Time: a.now, ServerName: serverName,
		InsecureSkipVerify: true, VerifyConnection: check, // against the one authority
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own() },
	}
	return accept, dial
}

// What controllers speak among themselves.
const (
	memberProtocol = "gbatch-replica"
	AskProtocol    = "gbatch-ask"  // offered beside the former, which one that does not know this takes
	CopyProtocol   = "gbatch-copy" // likewise
)

// AskTLS is for who asks another controller about itself.
func (a *Authority) AskTLS() *tls.Config {
	_, dial := a.MemberTLS()
	dial.NextProtos = append(dial.NextProtos, AskProtocol)
	return dial
}

// CopyTLS is for who gives another controller a file, or gets one from it.
func (a *Authority) CopyTLS() *tls.Config {
	_, dial := a.MemberTLS()
	dial.NextProtos = append(dial.NextProtos, CopyProtocol)
	return dial
}

// SignNode makes a node's certificate for the key in a request (PEM), and
// returns it with the key's id. Nothing of the request but its key is heeded.
func (a *Authority) SignNode(name string, request []byte) (certificate []byte, keyID string, err error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, "", errors.New("no certificate request in PEM")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, "", fmt.Errorf("certificate request: %w", err)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, "", fmt.Errorf("certificate request: %w", err)
	}
	if k, ok := r.PublicKey.(*ecdsa.PublicKey); !ok || k.Curve != elliptic.P256() {
		return nil, "", errors.New("certificate request: the key must be ECDSA on P-256")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &x509.Certificate{
		Subject:  pkix.Name{CommonName: name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := a.sign(t, a.ca, r.PublicKey, leafLife)
	if err != nil {
		return nil, "", fmt.Errorf("sign certificate of node %s: %w", name, err)
	}
	id, err := KeyID(r.PublicKey)
	return certificatePEM(der), id, err
}

// OpenKey reads a private key (PEM, ECDSA), or makes it.
func OpenKey(path string) (crypto.Signer, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		text, err := keyPEM(key)
		if err != nil {
			return nil, err
		}
		return key, atomicfile.WriteDurable(path, text)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("read %s: it holds no key in PEM", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	s, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read %s: it is no ECDSA key", path)
	}
	return s, nil
}
