package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	vns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Attached is a namespace with an address, ready for a container.
type Attached struct {
	// Namespace holds it; who runs the container keeps it open, or a copy.
	Namespace *os.File
	Addr      netip.Addr
	Gateway   netip.Addr
	Link      string // the host's interface
}

// inner is the interface's name in a namespace.
const inner = "eth0"

// maxOwner is what the kernel keeps of an interface's alias.
const maxOwner = 255

// ErrFull says that the subnet has no address left.
var ErrFull = errors.New("all addresses of the node's network are in use")

// Attach makes a namespace for an owner, in place of one it may have had, or takes
// one that was made before, such as one that belongs to a user namespace. It is the
// result's from then on, and stays the caller's after an error. With a gang, it is
// in the gang's network too.
func (n *Network) Attach(owner string, ns *os.File, g *Gang) (*Attached, error) {
	if owner == "" || len(owner) > maxOwner {
		return nil, fmt.Errorf("attach network: owner %q must have 1 to %d bytes", owner, maxOwner)
	}
	if err := n.Detach(owner); err != nil {
		return nil, err
	}
	if _, err := n.Ensure(); err != nil { // never run without isolation
		return nil, fmt.Errorf("attach network of %s: %w", owner, err)
	}
	a, err := n.attach(owner, ns, g)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach network of %s: %w", owner, err), n.Detach(owner))
	}
	return a, nil
}

func (n *Network) attach(owner string, ns *os.File, g *Gang) (*Attached, error) {
	made := ns == nil
	var err error
	if made {
		if ns, err = newNamespace(); err != nil {
			return nil, err
		}
	}
	p := pair{owner: owner, ns: ns, inner: inner}
	if g != nil {
		p.inner, p.hidden = gangUplink, true
	}
	addr, err := n.connect(&p)
	if err == nil {
		n.trace("inner")
		err = n.configure(&p, addr)
	}
	if err == nil && g != nil {
		n.trace("members")
		if err = n.admit(owner, g); err == nil {
			err = n.join(ns, g)
		}
	}
	if err != nil {
		if made {
			ns.Close()
		}
		return nil, err
	}
	n.trace("done")
	return &Attached{Namespace: ns, Addr: addr, Gateway: n.gateway(), Link: p.link}, nil
}

// Give makes what was attached for one owner another one's. It asks nothing of the
// kernel, so the interface still has its first owner's mark: until Mark has changed
// it, Keep has to be told the interface.
func (n *Network) Give(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attached[to] = n.attached[from]
	delete(n.attached, from)
}

// Mark marks an owner's interface as the owner's, for people and for Sweep.
func (n *Network) Mark(owner string) error {
	n.mu.Lock()
	name, ok := n.attached[owner]
	n.mu.Unlock()
	if !ok {
		return nil
	}
	link, err := n.host.LinkByName(name)
	if err == nil {
		err = n.host.LinkSetAlias(link, owner)
	}
	// It may have gone with its namespace.
	if gone := (netlink.LinkNotFoundError{}); err == nil || errors.As(err, &gone) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return fmt.Errorf("mark interface %s: %w", name, err)
}

// pair is a pair of interfaces: the host's, and one in a namespace.
type pair struct {
	owner  string
	ns     *os.File
	inner  string // the name of the one in the namespace
	hidden bool   // which has no address: the namespace's is on its loopback interface
	link   string // the host's, when it is there
}

// connect makes the pair of interfaces and the host's side of it. Names and
// routes are unique in the kernel: whoever could make both has the address,
// also among several nodes with the same subnet. The kernel takes long, and
// nobody else waits for it: neither by the mutex nor by a socket.
func (n *Network) connect(p *pair) (netip.Addr, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return netip.Addr{}, err
	}
	defer h.Close()
	for range lastNumber(n.cfg.Subnet) - firstNumber + 1 {
		number := n.nextNumber()
		addr := address(n.cfg.Subnet, number)
		err := n.connectAs(h, p, n.linkName(number), addr)
		if err == nil {
			p.link = n.linkName(number)
			n.mu.Lock()
			n.attached[p.owner] = p.link
			n.mu.Unlock()
			return addr, nil
		}
		if !errors.Is(err, unix.EEXIST) {
			return netip.Addr{}, err
		}
	}
	return netip.Addr{}, ErrFull
}

// nextNumber is the one after that which was given last.
func (n *Network) nextNumber() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cursor++
	if n.cursor < firstNumber || n.cursor > lastNumber(n.cfg.Subnet) {
		n.cursor = firstNumber
	}
	return n.cursor
}

func (n *Network) connectAs(h *netlink.Handle, p *pair, name string, addr netip.Addr) error {
	n.trace("link")
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, Alias: p.owner, MTU: n.cfg.MTU},
		PeerName:  p.inner, PeerNamespace: netlink.NsFd(p.ns.Fd()), PeerMTU: uint32(n.cfg.MTU),
	}
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("make interface %s: %w", name, err)
	}
	if err := n.hostSide(h, veth, addr); err != nil {
		return errors.Join(err, h.LinkDel(veth))
	}
	return nil
}

func (n *Network) hostSide(h *netlink.Handle, veth *netlink.Veth, addr netip.Addr) error {
	n.trace("alias") // not every kernel takes it with the new interface
	if err := h.LinkSetAlias(veth, veth.Alias); err != nil {
		return fmt.Errorf("mark interface %s: %w", veth.Name, err)
	}
	n.trace("up")
	if err := h.LinkSetUp(veth); err != nil {
		return fmt.Errorf("raise interface %s: %w", veth.Name, err)
	}
	n.trace("gateway")
	gw := single(n.gateway())
	if err := h.AddrAdd(veth, &netlink.Addr{IPNet: gw, Scope: unix.RT_SCOPE_LINK}); err != nil {
		return fmt.Errorf("give %s its address: %w", veth.Name, err)
	}
	n.trace("route")
	err := h.RouteAdd(&netlink.Route{
		LinkIndex: veth.Index, Scope: unix.RT_SCOPE_LINK, Dst: single(addr), Src: gw.IP,
	})
	if err != nil {
		return fmt.Errorf("route %s to %s: %w", addr, veth.Name, err)
	}
	return nil
}

// configure sets up the namespace's side.
func (n *Network) configure(p *pair, addr netip.Addr) error {
	h, err := netlink.NewHandleAt(vns.NsHandle(p.ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer h.Close()
	lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: 1}} // in every namespace
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("raise loopback interface: %w", err)
	}
	eth, err := h.LinkByName(p.inner)
	if err != nil {
		return err
	}
	var at netlink.Link = eth
	if p.hidden {
		at = lo
	}
	if err := h.AddrAdd(at, &netlink.Addr{IPNet: single(addr)}); err != nil {
		return fmt.Errorf("give container its address: %w", err)
	}
	if err := h.LinkSetUp(eth); err != nil {
		return fmt.Errorf("raise container's interface: %w", err)
	}
	gw := single(n.gateway())
	for _, r := range []*netlink.Route{
		{LinkIndex: eth.Attrs().Index, Scope: unix.RT_SCOPE_LINK, Dst: gw, Src: addr.AsSlice()},
		{LinkIndex: eth.Attrs().Index, Gw: gw.IP, Src: addr.AsSlice()},
	} {
		if err := h.RouteAdd(r); err != nil {
			return fmt.Errorf("set container's route: %w", err)
		}
	}
	return nil
}

// Detach takes owners' networks away with all their connections, their ports out of the
// published ones, and closes their tunnels. For owners without any it does nothing. Calls
// for one owner must not overlap.
func (n *Network) Detach(owners ...string) error {
	var errs []error
	var links []string
	n.mu.Lock()
	for _, o := range owners {
		errs = append(errs, n.unpublish(o), n.dismiss(o))
		if link, ok := n.attached[o]; ok {
			links = append(links, link)
		}
	}
	n.mu.Unlock()
	// It takes the kernel long, and others need not wait for it.
	if err := n.remove(links...); err != nil {
		return errors.Join(append(errs, err)...)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range owners {
		delete(n.attached, o)
	}
	return errors.Join(errs...)
}

// Keep says that an owner is to be kept by Sweep, with its ports and, unless g
// is nil, as a member of a gang. The interface link is its own if it has the mark of
// nobody who is kept; "" is none but the one with its mark.
func (n *Network) Keep(owner, link string, ports []uint16, g *Gang) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept[owner] = true
	if link != "" {
		n.keptLinks[link] = owner
	}
	if len(ports) > 0 {
		n.published[owner] = ports
	}
	if g != nil {
		n.gangs[owner] = g
	}
}

// Sweep takes away the networks of all owners that are not kept, and says
// whose they were; one that was not finished may have no owner, and is "". It
// is for a start, before the first Attach, and makes the rules those of this
// daemon. One failure does not end it.
func (n *Network) Sweep() (removed []string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	removed, err = n.sweep()
	clear(n.kept)
	clear(n.keptLinks)
	return removed, errors.Join(err, n.install())
}

func (n *Network) sweep() (removed []string, err error) {
	links, err := whole(n.host.LinkList)
	if err != nil {
		return nil, fmt.Errorf("sweep networks: %w", err)
	}
	var errs []error
	for _, l := range links {
		name, owner := l.Attrs().Name, l.Attrs().Alias
		if _, ours := n.numberOf(name); !ours || n.kept[owner] {
			continue
		}
		if whose := n.keptLinks[name]; whose != "" {
			delete(n.attached, owner)
			n.attached[whose] = name
			continue
		}
		if err := n.remove(name); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(n.attached, owner)
		removed = append(removed, owner)
	}
	return removed, errors.Join(errs...)
}

// Remove takes everything of a node's off the machine, for a node that has no
// networks any more. Forwarding stays, as others may have come to need it.
func Remove(node string) error {
	n := &Network{table: tableName(node)}
	n.links = n.table + "-"
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("remove network of node %s: %w", node, err)
	}
	defer h.Close()
	n.host = h
	_, err = n.sweep()
	if err := errors.Join(err, n.uninstall()); err != nil {
		return fmt.Errorf("remove network of node %s: %w", node, err)
	}
	return nil
}

func single(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
}
