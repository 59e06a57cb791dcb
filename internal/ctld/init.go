package ctld

import (
	"os"
	"time"

	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
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
	a, err := pki.Open(c.Dir, time.Now)
	if err != nil || c.Listen == "" {
		return "", err
	}
	return site.Address(c, c.Listen, a.Pin()), nil
}
