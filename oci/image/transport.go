package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// newTransport makes the HTTP transport for one registry and for what it
// redirects to.
func (c *Config) newTransport(host string) (*guard, error) {
	tlsConfig, err := c.tlsConfig(host)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &guard{config: c, next: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       tlsConfig,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: c.StallTimeout,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
	}}, nil
}

// transport returns the transport of a registry, which is kept for its open
// connections. Users choose registries, so only some are kept.
func (s *Store) transport(registry string) (http.RoundTripper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.transports[registry]; g != nil {
		return g, nil
	}
	g, err := s.config.newTransport(registry)
	if err != nil {
		return nil, err
	}
	if len(s.transports) >= maxTransports {
		s.closeTransportsLocked()
	}
	s.transports[registry] = g
	return g, nil
}

func (s *Store) closeTransportsLocked() {
	for _, g := range s.transports {
		g.next.CloseIdleConnections()
	}
	clear(s.transports)
}

// guard refuses plain http where it is not allowed. The registry client falls
// back to it for private addresses, which would send passwords in the clear.
type guard struct {
	config *Config
	next   *http.Transport
}

func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" && !g.config.plainHTTP(r.URL.Host) {
		return nil, http.ErrSchemeMismatch
	}
	return g.next.RoundTrip(r)
}

// tlsConfig reads the certificates for a host, in docker's layout. Files are
// read anew for each registry that is first used, so a wrong one spoils one
// registry only.
func (c *Config) tlsConfig(host string) (*tls.Config, error) {
	if c.CertsDir == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	t := &tls.Config{RootCAs: pool}
	for _, dir := range []string{c.CertsDir, filepath.Join(c.CertsDir, host)} {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read certificates: %w", err)
		}
		for _, e := range entries {
			if err := addCertificate(t, filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func addCertificate(t *tls.Config, file string) error {
	switch filepath.Ext(file) {
	case ".crt", ".pem":
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read CA certificate: %w", err)
		}
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("read CA certificate %s: no certificate in it", file)
		}
	case ".cert":
		pair, err := tls.LoadX509KeyPair(file, strings.TrimSuffix(file, ".cert")+".key")
		if err != nil {
			return fmt.Errorf("read client certificate %s: %w", file, err)
		}
		t.Certificates = append(t.Certificates, pair)
	}
	return nil
}

var errStalled = errors.New("the download stalled")

// stallReader ends a download that brings no byte for the given time. The
// clock runs only while a Read waits, so a slow disk is not a stall.
type stallReader struct {
	io.ReadCloser
	limit   time.Duration
	stalled context.Context
	cancel  context.CancelCauseFunc // of the request
}

func (r *stallReader) Read(p []byte) (int, error) {
	timer := time.AfterFunc(r.limit, func() { r.cancel(errStalled) })
	n, err := r.ReadCloser.Read(p)
	timer.Stop()
	if err != nil && err != io.EOF && errors.Is(context.Cause(r.stalled), errStalled) {
		err = errStalled
	}
	return n, err
}

func (r *stallReader) Close() error {
	err := r.ReadCloser.Close()
	r.cancel(nil)
	return err
}
