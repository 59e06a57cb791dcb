// Package transfer brings data to a machine and from it: objects of S3, files
// of HTTP servers, and directories. What was broken off goes on where it
// stopped, also by another process; nobody but a [Client]'s caller decides what
// is transferred, and it knows nothing of jobs.
//
// URIs come from strangers. A [reach.Guard] keeps connections away from the services
// of this machine and its site, and names of objects never lead out of the
// directory that they are written to.
package transfer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"

	"gbatch/internal/reach"
)

// Client transfers. Its fields are not changed once it is used.
type Client struct {
	Guard    reach.Guard
	Roots    *x509.CertPool // nil: the system's
	Parallel int            // requests at once, of one transfer
	Stall    time.Duration  // a try without a byte for that long has failed
	Pause    time.Duration  // before the second try; it doubles with each

	pieceSize int64 // of large objects; tests make it small
	way       way   // instead of the network, for tests; nil: none
}

// New returns a client with what is usual.
func New(g reach.Guard) *Client {
	return &Client{Guard: g, Parallel: 8, Stall: time.Minute, Pause: time.Second, pieceSize: 16 << 20}
}

// way is what requests go out by.
type way interface {
	http.RoundTripper
	CloseIdleConnections()
}

// scheme is the guard's word on one, as an error of this package.
func (c *Client) scheme(s string) error { return forbidden(c.Guard.Scheme(s)) }

func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.Guard.Dial(ctx, network, addr)
	return conn, forbidden(err)
}

func forbidden(err error) error {
	if e, ok := errors.AsType[*reach.Error](err); ok {
		return fail(Forbidden, "%s", e.Text)
	}
	return err
}

// transport is a new one for each transfer, which closes what is idle in the end.
// Proxies are not used: what they connect to could not be guarded.
func (c *Client) transport() way {
	if c.way != nil {
		return c.way
	}
	return &http.Transport{
		DialContext:           c.dial,
		TLSClientConfig:       &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   30 * time.Second,
		ResponseHeaderTimeout: c.Stall,

		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    c.Parallel,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true, // sizes and offsets are those of the object
		ForceAttemptHTTP2:      true,
	}
}
