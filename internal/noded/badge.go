package noded

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

// badge is how the node shows the controller that it is itself: a key that never
// leaves the state directory, and the controller's certificate for it. The
// first is had by a join token, the next by the one before. On the controller's
// own machine there is none: the socket says who calls.
type badge struct {
	cfg  *config.Config
	key  crypto.Signer // nil: no badge is needed
	file string
	now  func() time.Time
	cert atomic.Pointer[tls.Certificate]

	// Of the poll loop only.
	tried time.Time // when the last renewal was
	void  bool      // the controller does not take what we show
}

// renewEvery is how often a renewal that fails is tried again.
const renewEvery = 10 * time.Minute

// openBadge reads the badge in the state directory, or makes a key for one.
func openBadge(c *config.Config) (*badge, error) {
	b := &badge{cfg: c, file: filepath.Join(c.StateDir, "node.crt"), now: time.Now}
	if !strings.HasPrefix(c.Controller, "https:") {
		return b, nil
	}
	var err error
	if b.key, err = pki.OpenKey(filepath.Join(c.StateDir, "node.key")); err != nil {
		return nil, fmt.Errorf("the node's key: %w", err)
	}
	text, err := os.ReadFile(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's certificate: %w", err)
	}
	pair, err := pki.Pair(text, b.key)
	if err == nil && pair.Leaf.Subject.CommonName == c.Name {
		b.cert.Store(pair) // else it joins again
	}
	return b, nil
}

// shown is what TLS shows of it.
func (b *badge) shown() *tls.Certificate { return b.cert.Load() }

// ready sees to it that there is a badge, and that it lasts.
func (b *badge) ready(ctx context.Context, ctl controller, log *slog.Logger) error {
	if b.key == nil {
		return nil
	}
	have := b.cert.Load()
	switch now := b.now(); {
	case have == nil || b.void || now.After(have.Leaf.NotAfter):
		return b.join(ctx, ctl, log)
	case now.Before(pki.RenewAt(have.Leaf)) || now.Sub(b.tried) < renewEvery:
		return nil
	}
	b.tried = b.now()
	if err := b.renew(ctx, ctl); err != nil {
		log.Warn("the node's certificate was not renewed; it is tried again", "until", have.Leaf.NotAfter, "error", err)
	}
	return nil
}

// refused hears why a sync failed: what the controller does not take any more is
// to be replaced by joining again.
func (b *badge) refused(err error) {
	b.void = b.void || b.key != nil && client.IsCode(err, api.CodeUnauthorized)
}

func (b *badge) join(ctx context.Context, ctl controller, log *slog.Logger) error {
	token, err := b.token()
	if err != nil {
		return err
	}
	req, err := pki.Request(b.key)
	if err != nil {
		return err
	}
	text, err := ctl.JoinNode(ctx, b.cfg.Name, token, req)
	if err != nil {
		return fmt.Errorf("join as node %s: %w", b.cfg.Name, err)
	}
	if err := b.take(text); err != nil {
		return err
	}
	b.void = false
	b.dropIdle(ctl)
	log.Info("this machine has joined", "node", b.cfg.Name)
	return nil
}

// token is what to join by.
func (b *badge) token() (string, error) {
	if b.cfg.JoinTokenFile == "" {
		return "", errors.New("this machine has not joined the controller, or is not known there any more: make a token there by `gadm node-token create`, and name its file as joinTokenFile in gnoded.yaml")
	}
	text, err := os.ReadFile(b.cfg.JoinTokenFile)
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("join token file %s is empty", b.cfg.JoinTokenFile)
	}
	return token, nil
}

func (b *badge) renew(ctx context.Context, ctl controller) error {
	req, err := pki.Request(b.key)
	if err != nil {
		return err
	}
	text, err := ctl.RenewNode(ctx, b.cfg.Name, req)
	if err != nil {
		return err
	}
	if err := b.take(text); err != nil {
		return err
	}
	b.dropIdle(ctl)
	return nil
}

// dropIdle closes the connections that show an old certificate, or none.
func (b *badge) dropIdle(ctl controller) {
	if c, ok := ctl.(*client.Client); ok {
		c.Close()
	}
}

// take keeps a certificate and shows it from now on.
func (b *badge) take(text []byte) error {
	pair, err := pki.Pair(text, b.key)
	if err != nil {
		return fmt.Errorf("the controller's certificate for this node: %w", err)
	}
	if err := atomicfile.WriteDurable(b.file, text); err != nil {
		return fmt.Errorf("keep the node's certificate: %w", err)
	}
	b.cert.Store(pair)
	return nil
}

// dial makes the client of the controller; nothing is connected yet.
func dial(c *config.Config, b *badge, version string) *client.Client {
	return &client.Client{Address: c.Controller, Certificate: b.shown, UserAgent: "gnoded/" + version}
}
