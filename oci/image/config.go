package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Config of a Store. Only Dir is required.
type Config struct {
	// Dir is made if it does not exist. It must be on a file system that can
	// be an overlay's lower layer and that takes trusted.* attributes.
	Dir string
	// Dial connects to host:port for a pull, or refuses with an error that wraps
	// ErrForbidden. References, redirects and token services are a stranger's
	// choice, and all connections are made by it: it must look at the address
	// that it connects to. The connection must be a socket. Required.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Insecure lists hosts ("host" or "host:port") besides loopback which may
	// be spoken to by plain http, if Dial lets them be reached. All others must
	// speak TLS.
	Insecure []string
	// Mirrors are tried in order before the registry itself. A mirror is
	// host[:port][/path prefix]. It gets the node's credentials, never a user's.
	Mirrors map[string][]string
	// DockerConfigDir holds the config.json with the node's own credentials
	// and credential helpers. Empty: none are used.
	DockerConfigDir string
	// CertsDir holds CA certificates (*.crt, *.pem) for all registries, and in
	// host:port/ sub-directories those of one, with client certificates as
	// *.cert and *.key.
	CertsDir string
	// LocalRoots are the directories below which oci:, oci-archive: and
	// docker-archive: images may lie. The store reads as root, so none are
	// allowed by default. Symlinks that lead out of a root are refused.
	LocalRoots []string
	// PullTimeout bounds each call of Pull and Resolve. Default 30 minutes.
	PullTimeout time.Duration
	// StallTimeout ends a download that brings next to nothing in it, and is how long a
	// registry may take to answer. Default 1 minute.
	StallTimeout time.Duration
	// Retries of a temporary failure. Default 4; negative: none.
	Retries int
	// Backoff before the first retry; it doubles up to 10 s. Default 500 ms.
	Backoff time.Duration
	// Platform is os/architecture[/variant]. Default: linux on this machine's
	// architecture.
	Platform string
	// MaxBytes is what GC shrinks the store to. 0: images are kept for ever.
	MaxBytes int64
	// MaxUnpackedBytes bounds one image. Default 256 GiB.
	MaxUnpackedBytes int64
	// MinFree is how much of the disk unpacking leaves free. An image that does
	// not fit beside it is refused. Default 64 MiB.
	MinFree int64
	// Parallel is how many layers of one image are pulled at once. Default 3.
	Parallel int
	// Peers is how layers are shared with other nodes. Default: they are not.
	Peers Peers
	// Now and Sleep are for tests. Default: the real clock.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// Fixed bounds.
const (
	maxLayers       = 400              // after removal of duplicates; the kernel's overlay takes 500
	maxBlob         = 4 << 20          // bytes of a manifest, index or config
	maxBackoff      = 10 * time.Second // between two tries
	graceAfterUse   = time.Minute      // in which GC leaves a just used image alone
	maxRepulls      = 3                // of an image that GC removes before it is held
	maxWorkers      = 16               // processes that pull at the same time
	maxIdleWorkers  = 4                // that are kept for their open connections
	workerIdle      = 90 * time.Second // and for how long
	maxGrants       = 500              // remembered of an image or layer, the newest
	roomSlice       = 64 << 20         // bytes of disk that a worker takes at once
	minFreeInodes   = 1000             // that unpacking leaves free
	maxRememberRefs = 20               // names kept with an image, for listings
)

// complete returns a copy with defaults set, or all problems at once.
func (c Config) complete() (Config, error) {
	var errs []error
	if !filepath.IsAbs(c.Dir) {
		errs = append(errs, fmt.Errorf("image store directory %q is not an absolute path", c.Dir))
	}
	if c.Dial == nil {
		errs = append(errs, errors.New("nothing says how registries are connected to"))
	}
	for _, root := range c.LocalRoots {
		if !filepath.IsAbs(root) {
			errs = append(errs, fmt.Errorf("local image root %q is not an absolute path", root))
		}
	}
	for registry, mirrors := range c.Mirrors {
		for _, m := range mirrors {
			if m == "" || strings.Contains(m, "://") {
				errs = append(errs, fmt.Errorf("mirror %q of %s is not host[:port][/path]", m, registry))
			}
		}
	}
	if c.Platform == "" {
		c.Platform = "linux/" + runtime.GOARCH
	}
	if n := strings.Count(c.Platform, "/"); n < 1 || n > 2 {
		errs = append(errs, fmt.Errorf("platform %q is not os/architecture[/variant]", c.Platform))
	}
	setDefault(&c.PullTimeout, 30*time.Minute)
	setDefault(&c.StallTimeout, time.Minute)
	setDefault(&c.Retries, 4)
	setDefault(&c.Backoff, 500*time.Millisecond)
	setDefault(&c.MaxUnpackedBytes, 256<<30)
	setDefault(&c.MinFree, 64<<20)
	setDefault(&c.Parallel, 3)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	c.Peers.complete()
	return c, errors.Join(errs...)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
