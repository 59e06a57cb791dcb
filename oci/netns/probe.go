package netns

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	vns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// errUnsupported is wrapped by what says that the machine cannot do it at all.
var errUnsupported = errors.New("networks of their own cannot be made on this machine")

// Probe tries everything that a network needs, in a namespace that goes at
// once: nothing of the machine's own network is touched. The error names what
// is missing and wraps ErrUnsupported.
func Probe() error {
	ns, err := newNamespace()
	if err != nil {
		return lacking("network namespaces", err, "run as root, with a kernel that has CONFIG_NET_NS")
	}
	defer ns.Close()
	if err := probeLink(ns); err != nil {
		return lacking("virtual interfaces (veth)", err, "load them: modprobe veth")
	}
	for _, f := range features {
		if err := probeRules(ns, f.rules); err != nil {
			return lacking(f.name, err, f.fix)
		}
	}
	return nil
}

func lacking(what string, err error, fix string) error {
	return fmt.Errorf("%w: no %s: %w; %s", errUnsupported, what, err, fix)
}

func probeLink(ns *os.File) error {
	h, err := netlink.NewHandleAt(vns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: prefix + "probe0"}, PeerName: prefix + "probe1"})
}

// features are tried one after the other, as the kernel does not say which
// part of a table it did not know.
var features = []struct {
	name, fix string
	rules     func(b *builder)
}{
	{"nftables", "use a kernel with CONFIG_NF_TABLES_INET, or load it: modprobe nf_tables", func(b *builder) {
		b.chain("input", nftables.ChainHookInput, nftables.ChainPriorityFilter)
		b.rule(fromJob, protocol(unix.IPPROTO_TCP), portIn(b.set("open", nftables.TypeInetService, nil)), accept)
	}},
	{"connection tracking in nftables", "load it: modprobe nft_ct", func(b *builder) {
		b.chain("forward", nftables.ChainHookForward, nftables.ChainPriorityFilter)
		b.rule(toJob, established, accept)
	}},
	{"rejecting in nftables", "load it: modprobe nft_reject_inet", func(b *builder) {
		b.chain("input", nftables.ChainHookInput, nftables.ChainPriorityFilter)
		b.rule(fromJob, reject)
	}},
	{"route lookup in nftables", "load it: modprobe nft_fib_inet", func(b *builder) {
		b.chain("prerouting", nftables.ChainHookPrerouting, nftables.ChainPriorityRaw)
		b.rule(fromJob, forged, drop)
	}},
	{"address translation in nftables", "load it: modprobe nft_chain_nat nft_masq", func(b *builder) {
		b.chain("postrouting", nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
		b.rule(isIPv4, source(DefaultSubnet), notToJob, masquerade)
	}},
}

func probeRules(ns *os.File, rules func(b *builder)) error {
	conn, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		return err
	}
	t := conn.AddTable(&nftables.Table{Name: prefix + "probe", Family: nftables.TableFamilyINet})
	rules(&builder{conn: conn, table: t, jobs: prefix + "probe-"})
	conn.DelTable(t)
	return firewallHint(conn.Flush())
}

// firewallHint says what the kernel's bare numbers mean here.
func firewallHint(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w (needs CAP_NET_ADMIN)", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EPROTONOSUPPORT):
		return fmt.Errorf("%w (the kernel lacks this part)", err)
	}
	return err
}

// Conflicts lists chains of other software that throw away what is forwarded
// unless it is allowed: docker and many firewalls do. Whether they allow the
// node's networks cannot be told from here, so these are warnings.
func Conflicts(node string) ([]string, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("list firewall chains: %w", err)
	}
	chains, err := conn.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list firewall chains: %w", err)
	}
	var list []string
	for _, c := range chains {
		ip := c.Table.Family == nftables.TableFamilyINet || c.Table.Family == nftables.TableFamilyIPv4
		forward := c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookForward
		drops := c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop
		if ip && forward && drops && !strings.HasPrefix(c.Table.Name, tableName(node)) {
			list = append(list, c.Table.Name+" "+c.Name)
		}
	}
	return list, nil
}

// Interfaces is how the names of a node's interfaces begin, for the rules of
// other firewalls.
func Interfaces(node string) string { return tableName(node) + "-" }
