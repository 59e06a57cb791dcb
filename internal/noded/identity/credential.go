package identity

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/noded/config"
	"gbatch/internal/pki"
	"gbatch/oci/atomicfile"
)

// Credential is how the node shows the controller that it is itself: a key that
// never leaves the state directory, and the controller's certificate for it. The
// first is had by a join token, the next by the one before. On the controller's
// own machine there is none: the socket says who calls.
type Credential struct {
	cfg  *config.Config
	key  crypto.Signer // nil: no credential is needed
	file string
	now  func() time.Time
	cert atomic.Pointer[tls.Certificate]

	// Of the poll loop only.
	tried time.Time // when the last renewal was
	void  bool      // the controller does not take what we show
}

// signer is the part of the controller that signs certificates.
type signer interface {
	JoinNode(ctx context.Context, name, token string, request []byte) ([]byte, error)
	RenewNode(ctx context.Context, name string, request []byte) ([]byte, error)
}

// renewEvery is how often a renewal that fails is tried again.
const renewEvery = 10 * time.Minute

// OpenCredential reads what is in the state directory, or makes a key for one.
func OpenCredential(c *config.Config) (*Credential, error) {
	k := &Credential{cfg: c, file: filepath.Join(c.StateDir, "node.crt"), now: time.Now}
	if !strings.HasPrefix(c.Controller, "https:") {
		return k, nil
	}
	var err error
	if k.key, err = pki.OpenKey(filepath.Join(c.StateDir, "node.key")); err != nil {
		return nil, fmt.Errorf("the node's key: %w", err)
	}
	text, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's certificate: %w", err)
	}
	pair, err := pki.Pair(text, k.key)
	if err == nil && pair.Leaf.Subject.CommonName == c.Name {
		k.cert.Store(pair) // else it joins again
	}
	return k, nil
}

// Lacking says that there is no certificate yet, and one is needed.
func (k *Credential) Lacking() bool { return k.key != nil && k.shown() == nil }

// Expiry is until when the certificate holds; zero: there is none.
func (k *Credential) Expiry() time.Time {
	if have := k.cert.Load(); have != nil {
		return have.Leaf.NotAfter
	}
	return time.Time{}
}

// shown is the certificate, for TLS.
func (k *Credential) shown() *tls.Certificate { return k.cert.Load() }

// ToNodes is how this node speaks with others; nil: it has no certificate to do so by.
func (k *Credential) ToNodes() *pki.NodeTLS {
	pin := client.Pin(k.cfg.Controller)
	if k.key == nil || pin == "" {
		return nil
	}
	return &pki.NodeTLS{Pin: pin, Now: k.now, Own: k.shown}
}

// Ready sees to it that there is a certificate, and that it lasts.
func (k *Credential) Ready(ctx context.Context, ctl signer, log *slog.Logger) error {
	if k.key == nil {
		return nil
	}
	have := k.cert.Load()
	switch now := k.now(); {
	case have == nil || k.void || now.After(have.Leaf.NotAfter):
		return k.join(ctx, ctl, log)
	case now.Before(pki.RenewAt(have.Leaf)) || now.Sub(k.tried) < renewEvery:
		return nil
	}
	k.tried = k.now()
	if err := k.renew(ctx, ctl); err != nil {
		log.Warn("the node's certificate was not renewed; it is tried again", "until", have.Leaf.NotAfter, "error", err)
	}
	return nil
}

// Refused hears why a sync failed: what the controller does not take any more is
// to be replaced by joining again.
func (k *Credential) Refused(err error) {
	k.void = k.void || k.key != nil && client.IsCode(err, api.CodeUnauthorized)
}

func (k *Credential) join(ctx context.Context, ctl signer, log *slog.Logger) error {
	token, err := k.Token()
	if err != nil {
		return err
	}
	req, err := pki.Request(k.key)
	if err != nil {
		return err
	}
	text, err := ctl.JoinNode(ctx, k.cfg.Name, token, req)
	if err != nil {
		return fmt.Errorf("join as node %s: %w", k.cfg.Name, err)
	}
	if err := k.take(text); err != nil {
		return err
	}
	k.void = false
	k.dropIdle(ctl)
	log.Info("this machine has joined", "node", k.cfg.Name)
	return nil
}

// Token is what to join by.
func (k *Credential) Token() (string, error) {
	if k.cfg.JoinTokenFile == "" {
		return "", errors.New("this machine has not joined the controller, or is not known there any more: make a token there by `gadm node-token create`, and name its file as joinTokenFile in gnoded.yaml")
	}
	text, err := os.ReadFile(k.cfg.JoinTokenFile)
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("join token file %s is empty", k.cfg.JoinTokenFile)
	}
	return token, nil
}

func (k *Credential) renew(ctx context.Context, ctl signer) error {
	req, err := pki.Request(k.key)
	if err != nil {
		return err
	}
	text, err := ctl.RenewNode(ctx, k.cfg.Name, req)
	if err != nil {
		return err
	}
	if err := k.take(text); err != nil {
		return err
	}
	k.dropIdle(ctl)
	return nil
}

// dropIdle closes the connections that show an old certificate, or none.
func (k *Credential) dropIdle(ctl signer) {
	if c, ok := ctl.(*client.Client); ok {
		c.Close()
	}
}

// take keeps a certificate and shows it from now on.
func (k *Credential) take(text []byte) error {
	pair, err := pki.Pair(text, k.key)
	if err != nil {
		return fmt.Errorf("the controller's certificate for this node: %w", err)
	}
	if err := atomicfile.WriteDurable(k.file, text); err != nil {
		return fmt.Errorf("keep the node's certificate: %w", err)
	}
	k.cert.Store(pair)
	return nil
}

// Dial makes the client of the controller; nothing is connected yet.
func Dial(c *config.Config, k *Credential, version string) *client.Client {
	return &client.Client{Address: c.Controller, Certificate: k.shown, UserAgent: "gnoded/" + version}
}
