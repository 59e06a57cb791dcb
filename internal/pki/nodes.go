package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Nodes of a site speak to each other by the certificates that the controller knows them by. A
// certificate says which node that is and for how long; what it may have of another one now says
// a ticket, which the controller signs. So a node that was removed has nothing of others once
// its last tickets are over, long before its certificate is.

// LayersTicket lets a node read the layers of one image repository from other nodes.
type LayersTicket struct {
	Node  string    `json:"node"`
	Image string    `json:"image"` // registry and repository
	Until time.Time `json:"until"`
}

// ticketUse keeps what is signed apart from all else that the authority's key signs: certificates.
const ticketUse = "gbatch layers ticket 1\n"

// SignLayers signs a ticket, and returns the authority's certificate (DER) by which it can be checked.
func (a *Authority) SignLayers(t LayersTicket) (ticket string, authority []byte, err error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(append([]byte(ticketUse), text...))
	sig, err := a.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return "", nil, fmt.Errorf("sign ticket: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(sig), a.ca.Raw, nil
}

// checkLayers reads a ticket of an authority.
func checkLayers(ticket string, authority *x509.Certificate, now time.Time) (t LayersTicket, err error) {
	first, second, _ := strings.Cut(ticket, ".")
	text, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		return t, errors.New("the ticket cannot be read")
	}
	sig, err := base64.RawURLEncoding.DecodeString(second)
	if err != nil {
		return t, errors.New("the ticket cannot be read")
	}
	key, ok := authority.PublicKey.(*ecdsa.PublicKey)
	sum := sha256.Sum256(append([]byte(ticketUse), text...))
	if !ok || !ecdsa.VerifyASN1(key, sum[:], sig) {
		return t, errors.New("the ticket is not the controller's")
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return t, errors.New("the ticket cannot be read")
	}
	if !now.Before(t.Until) {
		return t, errors.New("the ticket is over")
	}
	return t, nil
}

// NodeTLS is how a node speaks with other nodes of the authority with that pin.
type NodeTLS struct {
	Pin string
	Now func() time.Time
	Own func() *tls.Certificate // nil, or it returns nil: it has none
}

func (n *NodeTLS) own() (*tls.Certificate, error) {
	if c := n.Own(); c != nil {
		return c, nil
	}
	return nil, errors.New("this node has no certificate yet")
}

// Accept is for who is called: it takes nodes only, which show the authority's certificate with their own.
func (n *NodeTLS) Accept() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Time: n.Now, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		GetCertificate:   func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return n.own() },
		VerifyConnection: func(s tls.ConnectionState) error { return n.verify(s.PeerCertificates) },
	}
}

func (n *NodeTLS) verify(chain []*x509.Certificate) error {
	if len(chain) != 2 || pinOf(chain[1]) != n.Pin {
		return ErrPin
	}
	return verifyNode(chain[0], chain[1], n.Now())
}

func verifyNode(leaf, authority *x509.Certificate, now time.Time) error {
	_, err := leaf.Verify(x509.VerifyOptions{Roots: poolOf(authority), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// Layers is what the caller of an accepted connection may read, by its ticket.
func (n *NodeTLS) Layers(s *tls.ConnectionState, ticket string) (t LayersTicket, err error) {
	if s == nil || len(s.PeerCertificates) != 2 {
		return t, ErrPin
	}
	if t, err = checkLayers(ticket, s.PeerCertificates[1], n.Now()); err != nil {
		return t, err
	}
	if node := s.PeerCertificates[0].Subject.CommonName; t.Node != node {
		return t, fmt.Errorf("the ticket is of node %s, and %s shows it", t.Node, node)
	}
	return t, nil
}

// Dial is for who calls a node: it takes that node only. Authority is what came with the ticket.
func (n *NodeTLS) Dial(node string, authority []byte) (*tls.Config, error) {
	ca, err := x509.ParseCertificate(authority)
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	if pinOf(ca) != n.Pin {
		return nil, ErrPin
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Time: n.Now,
		InsecureSkipVerify: true, // the chain is verified below, against the one authority
		VerifyConnection: func(s tls.ConnectionState) error {
			leaf := s.PeerCertificates[0]
			if leaf.Subject.CommonName != node {
				return fmt.Errorf("it is node %s, and not %s", leaf.Subject.CommonName, node)
			}
			return verifyNode(leaf, ca, n.Now())
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := n.own()
			if err != nil {
				return nil, err
			}
			shown := *c
			shown.Certificate = [][]byte{c.Certificate[0], authority}
			return &shown, nil
		},
	}, nil
}
