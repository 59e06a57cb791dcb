package ctld

import (
	"context"
	"net"
	"os"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/pki"
)

type siteInput struct{}

func (s *Server) site(context.Context, *siteInput) (*body[api.Site], error) {
	out := api.Site{Pin: s.pki.Pin()}
	for _, ln := range s.lns {
		if ln.Addr().Network() != "unix" {
			out.Address = joinString(*s.cfg(), ln.Addr().String(), out.Pin)
		}
	}
	return &body[api.Site]{out}, nil
}

// joinString is all that another machine needs to know of a controller that
// listens at an address.
func joinString(c Config, listen, pin string) string {
	return "https://" + c.advertised(listen) + "#" + pin
}

// advertised is where others reach what listens here.
func (c Config) advertised(listen string) string {
	if c.Advertise != "" {
		return c.Advertise
	}
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		if name, err := os.Hostname(); err == nil {
			return net.JoinHostPort(name, port)
		}
	}
	return listen
}

// Init makes the directory with the controller's keys and certificate authority
// unless they are there, and returns the join string; empty: it will listen on
// its socket only.
func Init(c Config) (string, error) {
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
	return joinString(c, c.Listen, a.Pin()), nil
}
