package jobstore

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"filippo.io/age"

	"gbatch/internal/api"
)

// Sealed is what is stored encrypted with a job. A controller from before jobs
// had secrets wrote the credential alone, in the same place.
type Sealed struct {
	api.Credential                   // empty: none
	Secrets        map[string]string `json:"secrets,omitempty"`
}

func (s Sealed) empty() bool { return s.Credential == api.Credential{} && len(s.Secrets) == 0 }

// Vault seals registry credentials and secrets for the store. The key is a file beside the
// store that only the controller's user can read.
type Vault struct{ key *age.X25519Identity }

// OpenVault reads the key from a file, or makes one.
func OpenVault(path string) (*Vault, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newVault(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read key of secrets: %w", err)
	}
	key, err := age.ParseX25519Identity(strings.TrimSpace(string(data)))
	if err != nil {
		return nil, fmt.Errorf("read key of secrets %s: %w", path, err)
	}
	return &Vault{key}, nil
}

func newVault(path string) (*Vault, error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("make key of secrets: %w", err)
	}
	if err := writeSecretFile(path, key.String()+"\n"); err != nil {
		return nil, fmt.Errorf("write key of secrets: %w", err)
	}
	return &Vault{key}, nil
}

// writeSecretFile writes a new file for the owner's eyes only, durably.
func writeSecretFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Sync(), f.Close())
}

// Key is a key for one purpose, which is as secret as the vault's.
func (v *Vault) Key(purpose string) []byte {
	h := hmac.New(sha256.New, []byte(v.key.String()))
	h.Write([]byte(purpose))
	return h.Sum(nil)
}

// Seal encrypts what only nodes that run the job may read.
func (v *Vault) Seal(c Sealed) ([]byte, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, err := age.Encrypt(&b, v.key.Recipient())
	if err != nil {
		return nil, fmt.Errorf("seal credentials: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("seal credentials: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal credentials: %w", err)
	}
	return b.Bytes(), nil
}

func (v *Vault) open(text []byte) (Sealed, error) {
	var c Sealed
	r, err := age.Decrypt(bytes.NewReader(text), v.key)
	if err != nil {
		return c, fmt.Errorf("open sealed credentials: %w", err)
	}
	if err := json.NewDecoder(r).Decode(&c); err != nil {
		return Sealed{}, errors.New("open sealed credentials: what was sealed is no JSON") // and never what it is
	}
	return c, nil
}
