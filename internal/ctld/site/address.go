package site

import (
	"net"
	"os"
	"strings"
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

// PageAddress is where browsers find the page of this very controller, which listens at an
// address: of several that are advertised the one that is its own, by its hosts and its port.
func PageAddress(c Config, listen string) string {
	all := strings.Split(c.advertised(listen), ",")
	machine, _ := os.Hostname() // unknown: no host is called so
	hosts := []string{hostOf(listen)}
	if c.Replica != nil {
		hosts = append(hosts, hostOf(c.Replica.Advertise), hostOf(c.Replica.Listen))
	}
	hosts = append(hosts, machine)
	for _, port := range []string{portOf(listen), ""} {
		for _, host := range hosts {
			for _, a := range all {
				if host != "" && strings.EqualFold(hostOf(a), host) && (port == "" || portOf(a) == port) {
					return "https://" + a
				}
			}
		}
	}
	return "https://" + all[0]
}

func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address) // none, or one that cannot be read: no host
	return host
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
