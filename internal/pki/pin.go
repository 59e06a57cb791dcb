package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// pinPrefix begins every pin; the rest is base64url without padding.
const pinPrefix = "sha256="

// pinOf is the pin of an authority's certificate.
func pinOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return pinPrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

// CheckPin says what is wrong with a pin as written.
func CheckPin(pin string) error {
	text, ok := strings.CutPrefix(pin, pinPrefix)
	if raw, err := base64.RawURLEncoding.DecodeString(text); !ok || err != nil || len(raw) != sha256.Size {
		return fmt.Errorf("%q is no pin: want sha256= and 43 letters, digits, - and _", pin)
	}
	return nil
}

// KeyID names a public key.
func KeyID(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	return keyID(der), nil
}

// KeyOf is KeyID of the key that a certificate is for, which has it encoded.
func KeyOf(c *x509.Certificate) string { return keyID(c.RawSubjectPublicKeyInfo) }

func keyID(der []byte) string {
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ErrPin is a controller that is not the pinned one.
var ErrPin = errors.New("its certificate is not of the authority that the address pins: this is another controller, or somebody between")

// ClientTLS is the other side of ServerTLS: it takes a controller whose
// certificate the pinned authority has signed, and shows what own returns, if
// anything. Now is the time by which certificates are judged.
func ClientTLS(pin string, now func() time.Time, own func() *tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"},
		ServerName: serverName,
		Time:       now,
		// The chain is verified below, against the one authority with the pin.
		InsecureSkipVerify: true,
		ClientSessionCache: &sessions{own: own},
		VerifyConnection: func(s tls.ConnectionState) error {
			if s.DidResume { // it was verified when the session began
				return stillGood(s.PeerCertificates, pin, now())
			}
			return verify(s.PeerCertificates, pin, now())
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if own != nil {
				if c := own(); c != nil {
					return c, nil
				}
			}
			return new(tls.Certificate), nil
		},
	}
}

// stillGood is verify for certificates that it has taken before.
func stillGood(chain []*x509.Certificate, pin string, now time.Time) error {
	for _, c := range chain {
		if now.Before(c.NotBefore) || now.After(c.NotAfter) {
			return x509.CertificateInvalidError{Cert: c, Reason: x509.Expired}
		}
	}
	for _, c := range chain[min(1, len(chain)):] {
		if pinOf(c) == pin {
			return nil
		}
	}
	return ErrPin
}

func verify(chain []*x509.Certificate, pin string, now time.Time) error {
	for _, c := range chain[min(1, len(chain)):] {
		if pinOf(c) != pin {
			continue
		}
		_, err := chain[0].Verify(x509.VerifyOptions{
			Roots: poolOf(c), DNSName: serverName, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		return err
	}
	return ErrPin
}

// Request is a certificate request (PEM) for a key.
func Request(key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(nil, new(x509.CertificateRequest), key)
	if err != nil {
		return nil, fmt.Errorf("make certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Pair joins a certificate (PEM) and its key.
func Pair(certificate []byte, key crypto.Signer) (*tls.Certificate, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return nil, errors.New("no certificate in PEM")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	if !publicEqual(leaf.PublicKey, key.Public()) {
		return nil, errors.New("the certificate is of another key")
	}
	return &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key, Leaf: leaf}, nil
}

// RenewAt is when a leaf certificate wants to be replaced.
func RenewAt(c *x509.Certificate) time.Time { return c.NotAfter.Add(-leafRenew) }

func poolOf(c *x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(c)
	return p
}

func publicEqual(a, b crypto.PublicKey) bool {
	k, ok := a.(*ecdsa.PublicKey)
	return ok && k.Equal(b)
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func readCertificate(path string) (*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("read %s: it holds no certificate in PEM", path)
	}
	return x509.ParseCertificate(block.Bytes)
}
