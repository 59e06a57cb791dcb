package image

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// certificates reads those for a host, in docker's layout, into its login.
// They are read for each pull, so a wrong one spoils one registry only and a
// new one counts at once.
func (c *Config) certificates(l *hostLogin) error {
	if c.CertsDir == "" {
		return nil
	}
	for _, dir := range []string{c.CertsDir, filepath.Join(c.CertsDir, l.Name)} {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read certificates: %w", err)
		}
		for _, e := range entries {
			if err := l.addCertificate(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *hostLogin) addCertificate(file string) error {
	switch filepath.Ext(file) {
	case ".crt", ".pem":
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read CA certificate: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return fmt.Errorf("read CA certificate %s: no certificate in it", file)
		}
		l.CAs = append(l.CAs, pem)
	case ".cert":
		var p pair
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
		l.Pairs = append(l.Pairs, p)
	}
	return nil
}
