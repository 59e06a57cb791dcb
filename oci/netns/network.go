package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Config describes the network of one node.
type Config struct {
	// Node names the node. Several nodes on one machine need different names,
	// by which their interfaces and tables are told apart. They may share a
	// subnet.
	Node string
	// Subnet is where addresses come from: IPv4, /16 to /29. The zero value is
	// DefaultSubnet. It must not be in use by anything that the node or its
	// containers talk to.
	Subnet netip.Prefix
	// DNS are name servers instead of those in the node's /etc/resolv.conf.
	DNS []netip.Addr
	// HostPorts are TCP ports on the node's own addresses that networks may
	// reach beside published ones.
	HostPorts []uint16
	// MTU of the interfaces. 0: that of the interface of the default route.
	MTU int
}

// DefaultSubnet has room for 4093 networks.
var DefaultSubnet = netip.MustParsePrefix("10.213.0.0/20")

// Validate reports all that is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	if c.Node == "" {
		errs = append(errs, errors.New("node: the name is missing"))
	}
	if s := c.Subnet; s.IsValid() && (!s.Addr().Is4() || s.Bits() < 16 || s.Bits() > 29 || s.Masked() != s) {
		errs = append(errs, fmt.Errorf("subnet: %s: must be an IPv4 network of /16 to /29 with no bits beyond that, as %s", s, DefaultSubnet))
	}
	for _, a := range c.DNS {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
			errs = append(errs, fmt.Errorf("dns: %s cannot be a name server's address", a))
		}
	}
	if c.MTU != 0 && (c.MTU < 1280 || c.MTU > 65535) {
		errs = append(errs, fmt.Errorf("mtu: %d: must be 1280 to 65535", c.MTU))
	}
	return errors.Join(errs...)
}

// Network is what a node has in common for its containers' networks. Methods
// may be called from several goroutines.
type Network struct {
	cfg   Config
	table string // nftables table
	links string // how interfaces' names begin
	host  *netlink.Handle
	names resolver

	mu        sync.Mutex
	attached  map[string]string   // interface by owner
	published map[string][]uint16 // ports by owner
	gangs     map[string]*Gang    // by owner
	kept      map[string]bool     // owners that Sweep shall keep
	keptLinks map[string]string   // owners by interface, likewise
	cursor    int                 // the number given last
	looked    bool                // the table was there at the firewall's generation seen
	seen      uint32
	trace     func(step string) // tests only: called before each step
}

// Open makes the node ready: addresses are forwarded and translated, and
// networks are kept apart, for those that exist from an earlier time too. What
// fails says what the machine lacks; see Probe.
func Open(cfg Config) (*Network, error) {
	if !cfg.Subnet.IsValid() {
		cfg.Subnet = DefaultSubnet
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open network: %w", err)
	}
	n, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("open network: %w", err)
	}
	return n, nil
}

func open(cfg Config) (*Network, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	table := tableName(cfg.Node)
	n := &Network{
		cfg: cfg, table: table, links: table + "-", host: h,
		attached: map[string]string{}, published: map[string][]uint16{}, gangs: map[string]*Gang{}, kept: map[string]bool{}, keptLinks: map[string]string{}, trace: func(string) {},
	}
	if err := n.begin(); err != nil {
		h.Close()
		return nil, err
	}
	return n, nil
}

func (n *Network) begin() error {
	links, err := whole(n.host.LinkList)
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		if number, ours := n.numberOf(l.Attrs().Name); ours {
			n.attached[l.Attrs().Alias] = l.Attrs().Name
			n.cursor = max(n.cursor, number)
		}
	}
	if err := n.checkSubnet(); err != nil {
		return err
	}
	if n.cfg.MTU == 0 {
		n.cfg.MTU = n.uplinkMTU()
	}
	if n.names, err = readResolver(resolvConf, n.cfg.DNS); err != nil {
		return err
	}
	if err := forwarding(); err != nil {
		return err
	}
	// A table that is there guards what runs, and this daemon does not know yet
	// what that is: see Sweep.
	there, err := n.installed()
	if err != nil || there {
		return err
	}
	return n.install()
}

// Close lets go of the node's network; what it made goes on working.
func (n *Network) Close() { n.host.Close() }

// Ensure looks whether what Open did is still so, and does it again if not: a
// firewall that is loaded anew removes all tables, a tool for kernel settings
// ends forwarding. It says whether it had to.
func (n *Network) Ensure() (repaired bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, genErr := generation() // before the look, so that no change comes between
	there := genErr == nil && n.looked && now == n.seen
	if !there {
		if there, err = n.installed(); err != nil {
			return false, err
		}
		n.looked, n.seen = there && genErr == nil, now
	}
	if there && isForwarding() {
		return false, nil
	}
	n.looked = false
	return true, errors.Join(forwarding(), n.install())
}

// gateway is the node's address on every network.
func (n *Network) gateway() netip.Addr { return address(n.cfg.Subnet, gatewayNumber) }

// checkSubnet refuses a subnet that the machine already uses for something
// else: its traffic would end up in containers.
func (n *Network) checkSubnet() error {
	routes, err := whole(func() ([]netlink.Route, error) { return n.host.RouteList(nil, unix.AF_INET) })
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() {
			continue
		}
		to, ok := netip.AddrFromSlice(r.Dst.IP.To4())
		bits, _ := r.Dst.Mask.Size()
		if !ok || !netip.PrefixFrom(to, bits).Overlaps(n.cfg.Subnet) {
			continue
		}
		link, err := n.host.LinkByIndex(r.LinkIndex)
		if err != nil {
			continue // it went meanwhile
		}
		if name := link.Attrs().Name; !isNodes(name) {
			return fmt.Errorf("subnet %s overlaps %s, which is reached by %s; choose another one", n.cfg.Subnet, r.Dst, name)
		}
	}
	return nil
}

// isNodes says that an interface belongs to this node or another one here.
func isNodes(link string) bool {
	return len(link) == len(prefix)+8+1+4 && strings.HasPrefix(link, prefix) && link[len(prefix)+8] == '-'
}

func (n *Network) uplinkMTU() int {
	const usual = 1500
	routes, err := whole(func() ([]netlink.Route, error) { return n.host.RouteList(nil, unix.AF_INET) })
	if err != nil {
		return usual
	}
	for _, r := range routes {
		if r.Dst != nil && !r.Dst.IP.IsUnspecified() {
			continue
		}
		if l, err := n.host.LinkByIndex(r.LinkIndex); err == nil && l.Attrs().MTU >= 1280 {
			return l.Attrs().MTU
		}
	}
	return usual
}

const forwardFile = "/proc/sys/net/ipv4/ip_forward"

func isForwarding() bool {
	b, err := os.ReadFile(forwardFile)
	return err == nil && strings.TrimSpace(string(b)) != "0"
}

func forwarding() error {
	if isForwarding() {
		return nil
	}
	if err := os.WriteFile(forwardFile, []byte("1"), 0); err != nil {
		return fmt.Errorf("let the kernel forward packets: %w; run: sysctl -w net.ipv4.ip_forward=1", err)
	}
	return nil
}
