package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	vns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Gang is the place of a namespace in a network that it shares with others, on
// this node or on other ones, and that nobody else reaches.
type Gang struct {
	Inside netip.Prefix // its address there, with the network's length
	Tunnel uint32       // number of the tunnel by which it takes what the others send, in 24 bits
	Node   netip.Addr   // this node's address, IPv4, from which and at which the others know it
	Peers  []Peer       // the others
}

// Peer is another member of a gang.
type Peer struct {
	Inside netip.Addr // its address in the gang's network
	Tunnel uint32
	Node   netip.Addr // its node's address
}

// TunnelPort is the UDP port at which nodes take what gangs send to each
// other. All nodes use the same.
const TunnelPort = 7078

// Names of interfaces in a namespace that is of a gang. The one that programs
// take for the network is the gang's. The way out has no address: the
// namespace's own lies on its loopback interface, where launchers of parallel
// programs do not look for ways between nodes.
const (
	gangBridge = "eth0"
	gangTunnel = "tun0"
	gangUplink = "up0"
)

// Overhead is what the tunnel puts before each packet: IPv4, UDP, VXLAN and
// the inner Ethernet header.
const overhead = 20 + 8 + 8 + 14

// tunnelPatience is how long the kernel may take for the removal of a
// namespace whose tunnel had the same number: that of a daemon that was killed.
const tunnelPatience = 10 * time.Second

// join connects a namespace with its gang. The tunnel's device is made by the
// host and into the namespace: its packets travel by the host's network, and
// nothing of it is to be seen or to be left there. It is a port of a bridge
// because the kernel does not deliver between two such devices of one machine
// what a program has sent by one of them directly.
func (n *Network) join(ns *os.File, g *Gang) error {
	tunnel := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: gangTunnel, MTU: n.tunnelMTU(g.Node), Namespace: netlink.NsFd(ns.Fd())},
		VxlanId:   int(g.Tunnel), Port: TunnelPort,
	}
	if n.isOwn(g.Node) {
		tunnel.SrcAddr = g.Node.AsSlice()
	}
	if err := n.addTunnel(tunnel); err != nil {
		return err
	}
	n.trace("tunnel")
	h, err := netlink.NewHandleAt(vns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer h.Close()
	if err := joinInside(h, g, tunnel.MTU); err != nil {
		return err
	}
	awaitCarrier(ns, h)
	return nil
}

func (n *Network) addTunnel(tunnel *netlink.Vxlan) error {
	for deadline := time.Now().Add(tunnelPatience); ; time.Sleep(10 * time.Millisecond) {
		err := n.host.LinkAdd(tunnel)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EADDRINUSE):
			return fmt.Errorf("UDP port %d of this node, which is for gangs, is in use: %w", TunnelPort, err)
		case !errors.Is(err, unix.EEXIST) || time.Now().After(deadline):
			return fmt.Errorf("make tunnel %d: %w", tunnel.VxlanId, err)
		}
	}
}

// joinInside sets up the namespace's side. All neighbours are written down:
// nobody asks for an address, so nobody can answer for another.
func joinInside(h *netlink.Handle, g *Gang, mtu int) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: gangBridge, MTU: mtu, HardwareAddr: hardware(g.Inside.Addr())}}
	if err := h.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make the gang's interface: %w", err)
	}
	tunnel, err := h.LinkByName(gangTunnel)
	if err != nil {
		return err
	}
	at := &netlink.Addr{IPNet: &net.IPNet{IP: g.Inside.Addr().AsSlice(), Mask: net.CIDRMask(g.Inside.Bits(), 32)}}
	err = errors.Join(h.LinkSetMaster(tunnel, bridge), h.LinkSetUp(tunnel), h.AddrAdd(bridge, at), h.LinkSetUp(bridge))
	if err != nil {
		return fmt.Errorf("raise the gang's interface: %w", err)
	}
	for _, p := range g.Peers {
		err := errors.Join(
			h.NeighAdd(&netlink.Neigh{
				LinkIndex: bridge.Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: p.Inside.AsSlice(), HardwareAddr: hardware(p.Inside),
			}),
			h.NeighAdd(&netlink.Neigh{
				LinkIndex: tunnel.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF,
				HardwareAddr: hardware(p.Inside), IP: p.Node.AsSlice(), VNI: int(p.Tunnel),
			}))
		if err != nil {
			return fmt.Errorf("set the way to %s of the gang: %w", p.Inside, err)
		}
	}
	return nil
}

// hardware is the Ethernet address that goes with an address of a gang's network.
func hardware(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return net.HardwareAddr{0x02, 'g', b[0], b[1], b[2], b[3]}
}

// isOwn says whether an address is one of the host's interfaces.
func (n *Network) isOwn(a netip.Addr) bool { return n.linkOf(a) != nil }

func (n *Network) linkOf(a netip.Addr) netlink.Link {
	addrs, err := whole(func() ([]netlink.Addr, error) { return n.host.AddrList(nil, unix.AF_INET) })
	if err != nil {
		return nil
	}
	for _, at := range addrs {
		if at.IP.Equal(a.AsSlice()) {
			if l, err := n.host.LinkByIndex(at.LinkIndex); err == nil {
				return l
			}
		}
	}
	return nil
}

// tunnelMTU is what fits into packets of the interface by which the node is
// known; between nodes of one machine there is no narrower way than out.
func (n *Network) tunnelMTU(node netip.Addr) int {
	if l := n.linkOf(node); l != nil && l.Attrs().Flags&net.FlagLoopback == 0 {
		return l.Attrs().MTU - overhead
	}
	return n.cfg.MTU - overhead
}

// GangAddress reads the address of a node that takes part in gangs. A node
// without a way out has none, and no other machine to reach either: gangs of
// several nodes on it meet on its loopback interface.
func GangAddress(text string) (netip.Addr, error) {
	if text == "" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Unmap().Is4() {
		return netip.Addr{}, fmt.Errorf("jobs on several nodes cannot have a network between them: the node is known to others by %q and not by an IPv4 address; set address", text)
	}
	return a.Unmap(), nil
}

// ProbeGang tries what a network between nodes needs beside what [Probe] does.
func ProbeGang() error {
	ns, err := newNamespace()
	if err != nil {
		return err
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(vns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, p := range []struct {
		what, fix string
		link      netlink.Link
	}{
		{"tunnels (VXLAN)", "use a kernel with CONFIG_VXLAN, or load it: modprobe vxlan",
			&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: gangTunnel}, VxlanId: 1, Port: TunnelPort}},
		{"bridges", "use a kernel with CONFIG_BRIDGE, or load it: modprobe bridge", &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: gangBridge}}},
	} {
		if err := h.LinkAdd(p.link); err != nil {
			return fmt.Errorf("jobs on several nodes cannot have a network between them: no %s: %w; %s", p.what, err, p.fix)
		}
	}
	return nil
}
