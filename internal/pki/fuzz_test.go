package pki

import (
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"testing"
)

// FuzzSignNode: whatever a request says, its certificate is for the name that
// the controller gives and for nothing else.
func FuzzSignNode(f *testing.F) {
	dir := f.TempDir()
	a, err := Open(dir, newClock().now)
	if err != nil {
		f.Fatal(err)
	}
	key, err := OpenKey(filepath.Join(dir, "node.key"))
	if err != nil {
		f.Fatal(err)
	}
	good, err := Request(key)
	if err != nil {
		f.Fatal(err)
	}
	block, _ := pem.Decode(good)
	f.Add(block.Bytes)
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, der []byte) {
		text, id, err := a.SignNode("n1", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
		if err != nil {
			return
		}
		block, _ := pem.Decode(text)
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || id == "" || c.Subject.CommonName != "n1" || c.IsCA || len(c.DNSNames)+len(c.IPAddresses) > 0 {
			t.Errorf("%v: %+v", err, c)
		}
	})
}
