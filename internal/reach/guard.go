// Package reach says where addresses that strangers give may lead, and connects to no
// others. What travels over the connection it does not know.
package reach

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Guard says where a stranger's URI may lead. By default that is the internet:
// not this machine, not private networks, and nothing that an address can be
// hidden in. What counts is the address that is connected to, not what a name
// meant a moment before.
type Guard struct {
	// Hosts may be reached whatever their addresses are: HOST, HOST:PORT, or a
	// network as 10.2.0.0/16.
	Hosts []string
	// PlainHTTP allows http:// beside https://.
	PlainHTTP bool
}

// Error is a refusal, in a sentence for the user.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func fail(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// CheckHost says what is wrong with one of Hosts, or "".
func CheckHost(h string) string {
	if strings.Contains(h, "/") {
		if _, err := netip.ParsePrefix(h); err != nil {
			return "write HOST, HOST:PORT, or a network as 10.2.0.0/16"
		}
		return ""
	}
	if h == "" || strings.ContainsAny(h, " @*") {
		return "write HOST, HOST:PORT, or a network as 10.2.0.0/16"
	}
	return ""
}

// Scheme refuses what goes unencrypted where the site does not want that.
func (g Guard) Scheme(s string) error {
	if s == "https" || s == "http" && g.PlainHTTP {
		return nil
	}
	return fail("%s:// is not allowed here; use https://", s)
}

// Dial connects to where the guard lets it, and else fails with an Error.
func (g Guard) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	if !slices.Contains(g.Hosts, host) && !slices.Contains(g.Hosts, addr) {
		d.Control = func(_, address string, _ syscall.RawConn) error { return g.check(host, address) }
	}
	return d.DialContext(ctx, network, addr)
}

// check decides about an address that is about to be connected to.
func (g Guard) check(host, address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fail("%s has an address that cannot be read", host)
	}
	a := ap.Addr().Unmap().WithZone("")
	for _, h := range g.Hosts {
		if net, err := netip.ParsePrefix(h); err == nil && net.Contains(a) {
			return nil
		}
	}
	if !public(a) || ours(a) {
		return fail("%s is inside this site, which may not be reached for jobs; its administrator can allow the host", host)
	}
	return nil
}

// hidden are networks that are not the internet, or ways to name others.
var hidden = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

func prefixes(list ...string) (ps []netip.Prefix) {
	for _, s := range list {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

var globalV6 = netip.MustParsePrefix("2000::/3")

func public(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !globalV6.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(hidden, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ours says whether the address is one of this machine's, or that cannot be told.
func ours(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, l := range list {
		if p, err := netip.ParsePrefix(fmt.Sprint(l)); err == nil && p.Addr().Unmap() == a {
			return true
		}
	}
	return false
}
