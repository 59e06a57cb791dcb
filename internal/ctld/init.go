package ctld

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
	"gbatch/internal/replica"
)

// Init makes the directory with the controller's keys and certificate authority
// unless they are there, and returns the join string; empty: it will listen on
// its socket only.
func Init(c site.Config) (string, error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", err
	}
	there, err := pki.Exists(c.Dir)
	if err == nil && !there { // of a site that is used a key that is missing is not made anew
		_, err = jobstore.OpenVault(filepath.Join(c.Dir, site.VaultFile))
	}
	if err != nil {
		return "", err
	}
	a, err := pki.Open(c.Dir, time.Now)
	if err != nil || c.Listen == "" {
		return "", err
	}
	return site.Address(c, c.Listen, a.Pin()), nil
}

// InitMember makes the directory of one of several controllers, which must be empty. It gets
// its records from the others.
func InitMember(c site.Config, f *api.JoinFile) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Replica == nil || c.Replica.Name != f.Name || c.Replica.Address() != f.Address {
		return fmt.Errorf("the configuration must say `replica: {name: %s, listen: %q}`, or advertise that address", f.Name, f.Address)
	}
	return errors.Join(backup.PutKeys(c.Dir, f.Keys), replica.MakeDir(filepath.Join(c.Dir, site.ReplicaDir), f.Entry))
}
