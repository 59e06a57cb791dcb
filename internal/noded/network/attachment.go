package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/oci"
	"gbatch/oci/handed"
	"gbatch/oci/netns"
	"gbatch/oci/userns"
)

// Attachment is a rank's own network until its shim holds it. A nil one stands
// for the node's network.
type Attachment struct {
	net       *netns.Network
	at        *netns.Attached
	gang      *netns.Gang  // nil: it is in none
	names     []netns.Name // of the gang
	ports     []job.PortMapping
	listeners []*net.TCPListener
	files     []*os.File
}

// Join makes the user namespace of a rank with these ids, nil where they are the
// node's, and the rank's network, in which it takes the rank's ports; the network is
// nil where the rank has the node's. After an error Detach removes what there is.
func (n *Network) Join(id job.RankID, o *api.RunOrder, ids userns.Map) (*Attachment, *os.File, error) {
	switch host := o.Spec.Network() == job.NetworkHost; {
	case host && n.noHost:
		return nil, nil, reason.Errorf(job.BadSpec, "%s does not let jobs use its own network, which this one asks for", n.node)
	case host:
		made, err := namespaces(ids, false)
		return nil, made.User, err
	case n.own == nil:
		return nil, nil, reason.Errorf(job.BadSpec, "jobs cannot have a network of their own on %s: %s", n.node, n.why)
	}
	g, err := n.gang(id, o)
	if err != nil {
		return nil, nil, err
	}
	at, user, err := n.attach(id.String(), ids, g)
	if err != nil {
		return nil, nil, err
	}
	a := &Attachment{net: n.own, at: at, gang: g}
	switch {
	case g != nil:
		a.names = names(int(id.Rank), o)
	case len(o.Spec.Request.Docker.PortMappings) == 0: // nobody outside knows it: its end need not be at once
		n.leaving.hold(id.String(), at.Namespace)
	}
	err = a.listen(n, o.Spec.Request.Docker.PortMappings)
	if err == nil {
		err = n.own.Publish(id.String(), hostPorts(a.ports))
	}
	if err != nil {
		a.Close()
		user.Close()
		return nil, nil, err
	}
	return a, user, nil
}

// attach takes a network that was made ahead, or makes one.
func (n *Network) attach(owner string, ids userns.Map, g *netns.Gang) (*netns.Attached, *os.File, error) {
	n.leaving.begin(owner)
	if g == nil {
		defer n.ahead.used(ids)
		if s := n.ahead.take(ids); s != nil {
			if _, err := n.own.Ensure(); err == nil { // never run without isolation
				n.own.Give(s.owner, owner)
				n.ahead.mark(owner)
				return s.at, s.user, nil
			}
			n.ahead.drop(s)
		}
	}
	made, at, err := attachNew(n.own, owner, ids, g)
	if errors.Is(err, netns.ErrFull) && (n.leaving.clear() || n.ahead.clear()) {
		made, at, err = attachNew(n.own, owner, ids, g)
	}
	return at, made.User, err
}

// attachNew makes the namespaces and the network in them.
func attachNew(own *netns.Network, owner string, ids userns.Map, g *netns.Gang) (userns.Namespaces, *netns.Attached, error) {
	made, err := namespaces(ids, true)
	if err != nil {
		return made, nil, err
	}
	at, err := own.Attach(owner, made.Net, g)
	if err != nil {
		made.Close()
		return userns.Namespaces{}, nil, err
	}
	return made, at, nil
}

// namespaces are those of a container with these ids; where they are the node's, it
// has the node's user namespace, and its network is made with the interface.
func namespaces(ids userns.Map, net bool) (userns.Namespaces, error) {
	if ids.IsZero() {
		return userns.Namespaces{}, nil
	}
	return userns.New(ids, net)
}

// Link is the interface that the node has for the rank's network; empty: none. It is
// to be recorded before anything runs in that network.
func (a *Attachment) Link() string {
	if a == nil {
		return ""
	}
	return a.at.Link
}

// listen takes a port of the node for each mapping.
func (a *Attachment) listen(n *Network, want []job.PortMapping) error {
	a.ports = slices.Clone(want)
	for i := range a.ports {
		m := &a.ports[i]
		ip := n.settings.HostIP
		if m.HostIP != "" {
			ip = netip.MustParseAddr(m.HostIP) // checked when the document was read
		} else if ip.IsValid() {
			m.HostIP = ip.String()
		}
		l, err := netns.Listen(ip, uint16(m.HostPort), n.settings.Ports)
		if err != nil {
			return n.explain(err)
		}
		a.listeners = append(a.listeners, l)
		m.HostPort = l.Addr().(*net.TCPAddr).Port
		f, err := l.File()
		if err != nil {
			return fmt.Errorf("hand over port %d: %w", m.HostPort, err)
		}
		a.files = append(a.files, f)
	}
	return nil
}

// Ports are the mappings with the ports that were taken.
func (a *Attachment) Ports() []job.PortMapping {
	if a == nil {
		return nil
	}
	return a.ports
}

// Address is the rank's own; invalid: it has the node's network.
func (a *Attachment) Address() netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	return a.at.Addr
}

// Hosts is /etc/hosts with a rank's own names in it, and those of its gang.
func (a *Attachment) Hosts(text []byte, own []string) []byte {
	if a.gang == nil {
		return netns.Hosts(text, netns.Name{Addr: a.at.Addr, Names: own})
	}
	return netns.Hosts(text, a.names...)
}

// Gang says that the rank shares a network with those of other nodes.
func (a *Attachment) Gang() bool { return a != nil && a.gang != nil }

// ResolvConf is the rank's /etc/resolv.conf.
func (a *Attachment) ResolvConf() []byte {
	text, _ := a.net.ResolvConf()
	return text
}

// Shim is the shim's part of the network; nil is the node's.
func (a *Attachment) Shim() *oci.ShimNetwork {
	if a == nil {
		return nil
	}
	_, relay := a.net.ResolvConf()
	s := &oci.ShimNetwork{Addr: a.at.Addr, Relay: relay}
	for _, m := range a.ports {
		s.Ports = append(s.Ports, uint16(m.ContainerPort))
	}
	return s
}

// Handover gives the shim what it takes over.
func (a *Attachment) Handover(h *handed.Handover) {
	if a != nil {
		h.Namespace, h.Listeners = a.at.Namespace, a.files
	}
}

// Close closes what only a shim has to hold. It comes when there is one, and
// when there will be none.
func (a *Attachment) Close() {
	if a == nil {
		return
	}
	for _, l := range a.listeners {
		l.Close()
	}
	for _, f := range a.files {
		f.Close()
	}
	a.at.Namespace.Close()
}

func hostPorts(list []job.PortMapping) []uint16 {
	var ports []uint16
	for _, m := range list {
		ports = append(ports, uint16(m.HostPort))
	}
	return ports
}
