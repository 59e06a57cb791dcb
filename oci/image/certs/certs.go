// Package certs reads the certificates of a registry, in docker's layout, and has TLS go
// by them. Who reads them need not be the process that connects.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Certs are those of one host.
type Certs struct {
	CAs   [][]byte `json:"cas,omitempty"` // in PEM, beside the system's
	Pairs []Pair   `json:"pairs,omitempty"`
}

// Pair is a client certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// Read reads those for all hosts from a directory, and those of one host from its directory there.
// They are read for each pull, so a wrong one spoils one registry only and a
// new one counts at once.
func Read(top, host string) (c Certs, err error) {
	if top == "" {
		return c, nil
	}
	for _, dir := range []string{top, filepath.Join(top, host)} {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, fmt.Errorf("read certificates: %w", err)
		}
		for _, e := range entries {
			if err := c.add(filepath.Join(dir, e.Name())); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

func (c *Certs) add(file string) error {
	switch filepath.Ext(file) {
	case ".crt", ".pem":
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read CA certificate: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return fmt.Errorf("read CA certificate %s: no certificate in it", file)
		}
		c.CAs = append(c.CAs, pem)
	case ".cert":
		var p Pair
		var err error
		if p.Cert, err = os.ReadFile(file); err == nil {
			p.Key, err = os.ReadFile(strings.TrimSuffix(file, ".cert") + ".key")
		}
		if err == nil {
			_, err = tls.X509KeyPair(p.Cert, p.Key)
		}
		if err != nil {
			return fmt.Errorf("read client certificate %s: %w", file, err)
		}
		c.Pairs = append(c.Pairs, p)
	}
	return nil
}

// TLS trusts the system's authorities and these; nil: as usual, as there are none.
func (c Certs) TLS() (*tls.Config, error) {
	if len(c.CAs) == 0 && len(c.Pairs) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	t := &tls.Config{RootCAs: pool}
	for _, pem := range c.CAs {
		pool.AppendCertsFromPEM(pem)
	}
	for _, p := range c.Pairs {
		cert, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			return nil, err
		}
		t.Certificates = append(t.Certificates, cert)
	}
	return t, nil
}
