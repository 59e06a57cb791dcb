package netns

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
)

const resolvConf = "/etc/resolv.conf"

// relayAddr is where a network finds a [Relay].
var relayAddr = netip.MustParseAddrPort("127.0.0.53:53")

// resolver is how networks find names.
type resolver struct {
	direct []netip.Addr     // name servers that a network can reach itself
	relay  []netip.AddrPort // else: those that only the node can reach
	rest   []string         // search, options and the like, as the node has them
}

// readResolver takes the node's own configuration, with other name servers if
// any are given.
func readResolver(path string, servers []netip.Addr) (resolver, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return resolver{}, fmt.Errorf("read the node's name servers: %w", err)
	}
	return newResolver(text, servers), nil
}

// newResolver sorts name servers. What listens on the node's loopback, as most
// caching resolvers do, or speaks IPv6 only, is out of a network's reach and
// is asked through a relay, if there are no others.
func newResolver(conf []byte, servers []netip.Addr) resolver {
	var r resolver
	given := len(servers) > 0
	for line := range strings.Lines(string(conf)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.ContainsAny(fields[0][:1], "#;") {
			continue
		}
		if fields[0] != "nameserver" {
			r.rest = append(r.rest, strings.Join(fields, " "))
			continue
		}
		if a, err := netip.ParseAddr(fields[1]); err == nil && !given {
			servers = append(servers, a)
		}
	}
	if len(servers) == 0 {
		servers = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})} // what the C library does
	}
	for _, a := range servers {
		if a = a.Unmap(); a.Is4() && !a.IsLoopback() {
			r.direct = append(r.direct, a)
		} else {
			r.relay = append(r.relay, netip.AddrPortFrom(a, 53))
		}
	}
	if len(r.direct) > 0 {
		r.relay = nil
	}
	return r
}

func (r resolver) directElements() []nftables.SetElement {
	var list []nftables.SetElement
	for i, a := range r.direct {
		if !slices.Contains(r.direct[:i], a) {
			list = append(list, nftables.SetElement{Key: a.AsSlice()})
		}
	}
	return list
}

// ResolvConf is the text of /etc/resolv.conf for a network. Where relay is not
// empty, whoever holds the namespace has to run a [Relay] to these servers.
func (n *Network) ResolvConf() (text []byte, relay []netip.AddrPort) {
	return n.names.conf(), n.names.relay
}

func (r resolver) conf() []byte {
	var b bytes.Buffer
	for _, a := range r.direct {
		fmt.Fprintf(&b, "nameserver %s\n", a)
	}
	if len(r.relay) > 0 {
		fmt.Fprintf(&b, "nameserver %s\n", relayAddr.Addr())
	}
	for _, line := range r.rest {
		fmt.Fprintln(&b, line)
	}
	return b.Bytes()
}

// Name is an address with its names.
type Name struct {
	Addr  netip.Addr
	Names []string
}

// Hosts is the text of /etc/hosts for a network, with the given names: the
// node's own list, without what is about the node's loopback or those names.
func Hosts(node []byte, own ...Name) []byte {
	var b bytes.Buffer
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	var names []string
	for _, n := range own {
		fmt.Fprintf(&b, "%s\t%s\n", n.Addr, strings.Join(n.Names, " "))
		names = append(names, n.Names...)
	}
	for line := range strings.Lines(string(node)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil || a.IsLoopback() || a.IsMulticast() {
			continue
		}
		others := slices.DeleteFunc(fields[1:], func(name string) bool {
			return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
		})
		if len(others) > 0 {
			fmt.Fprintf(&b, "%s\t%s\n", fields[0], strings.Join(others, " "))
		}
	}
	return b.Bytes()
}
