package pki

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A connection that goes on from a session of an earlier one needs no signatures and no look at certificates, which is most of what TLS
// computes. That matters where another controller leads, to which all nodes come at the same time. So the controllers
// of a site have the keys of tickets in common: they follow from the authority's and a secret of theirs, of which nothing is known outside. A session says which certificates were
// shown in it, and whether they are still taken is looked at for each connection and request as for any other.

// ticketLife is for how long the keys of tickets are made; those before are taken, too.
const ticketLife = 24 * time.Hour

// ticketKeys are those at a time, the one that tickets are made with first. Who has them can show any certificate, so they follow from the
// authority's key, too: the site's secret alone makes nobody a node.
func (a *Authority) ticketKeys() (keys [][32]byte, err error) {
	own, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	day := a.now().Unix() / int64(ticketLife.Seconds())
	for _, of := range []int64{day, day - 1, day + 1} { // clocks of controllers differ
		key, err := hkdf.Key(sha256.New, slices.Concat(a.Secret, own), nil, fmt.Sprintf("gbatch session tickets %d", of), 32)
		if err != nil {
			return nil, err
		}
		keys = append(keys, [32]byte(key))
	}
	return keys, nil
}

// The exchange of keys is half of what a connection costs that goes on from a session, and half of that is ML-KEM, by which nobody
// can read later what was recorded today. The secret of a session does as well: it came by ML-KEM, and is part of the keys
// of each connection that goes on from it. So these agree on theirs by X25519 alone.

// Resuming is what a client's connection goes on with from a session that it has; nil: it has none. One that does not go on from it, as the
// controllers' secret is another one, is not to be used: it has to be made by config.
func Resuming(config *tls.Config) *tls.Config {
	if config.ClientSessionCache == nil {
		return nil
	}
	if _, some := config.ClientSessionCache.Get(""); !some {
		return nil
	}
	c := config.Clone()
	c.CurvePreferences = []tls.CurveID{tls.X25519}
	return c
}

// sessions are the last session with the controllers, whichever they are, while one's own certificate is the same.
type sessions struct {
	own func() *tls.Certificate // nil: none is shown

	mu    sync.Mutex
	shown *tls.Certificate
	last  *tls.ClientSessionState
}

func (s *sessions) certificate() *tls.Certificate {
	if s.own == nil {
		return nil
	}
	return s.own()
}

func (s *sessions) Get(string) (*tls.ClientSessionState, bool) {
	shown := s.certificate()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.shown != shown {
		return nil, false
	}
	return s.last, true
}

func (s *sessions) Put(_ string, last *tls.ClientSessionState) {
	shown := s.certificate()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.shown = last, shown
}
