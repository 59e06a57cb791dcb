package image

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	dockerconfig "github.com/docker/cli/cli/config"
	"github.com/google/go-containerregistry/pkg/authn"

	"gbatch/oci/ref"
)

// anyone is the identity of a request without credentials: it is answered
// with the node's own, if any, so all users get the same.
const anyone = "anyone"

// identify gives credentials a name that can be kept on disk without telling
// the password: a keyed hash, whose key never leaves the store's directory.
func (s *Store) identify(c *ref.Credentials) string {
	if c == nil {
		return anyone
	}
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "%d:%s:%s", len(c.Username), c.Username, c.Password)
	return hex.EncodeToString(mac.Sum(nil))
}

// loadKey reads or makes the key of identify.
func loadKey(dir string) ([]byte, error) {
	file := filepath.Join(dir, "identity.key")
	key, err := os.ReadFile(file)
	if err == nil && len(key) == 32 {
		return key, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	key = make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return key, writeFile(file, key)
}

// nodeLogin finds the node's own login at a registry in docker's config.json,
// or by its helpers. The file is read at each use: sites rotate passwords.
func nodeLogin(dir, registry string) (credentials, error) {
	if dir == "" {
		return credentials{}, nil
	}
	file, err := dockerconfig.Load(dir)
	if err != nil {
		return credentials{}, fail(Internal, "the node's docker config cannot be read: %v", err)
	}
	key := registry
	if registry == ref.DefaultRegistry {
		key = authn.DefaultAuthKey
	}
	found, err := file.GetAuthConfig(key)
	if err != nil {
		return credentials{}, fail(Denied, "the node's credential helper for %s failed: %v", registry, err)
	}
	return credentials{
		Username: found.Username, Password: found.Password, Auth: found.Auth,
		IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
	}, nil
}
