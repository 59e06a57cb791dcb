package site

import (
	"net"
	"os"
)

// Address is all that another machine needs to know of a controller that
// listens at an address.
func Address(c Config, listen, pin string) string {
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
