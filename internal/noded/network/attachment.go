package network

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/oci"
	"gbatch/oci/netns"
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

// Join makes the rank's network and takes its ports; it returns nil where the
// rank has the node's. namespace makes the one that the rank's network lives
// in; it may return nil for one that belongs to the node. After an error Detach
// removes what there is.
func (n *Network) Join(id job.RankID, o *api.RunOrder, namespace func() (*os.File, error)) (*Attachment, error) {
	switch host := o.Spec.Network() == job.NetworkHost; {
	case host && n.noHost:
		return nil, reason.Errorf(job.BadSpec, "%s does not let jobs use its own network, which this one asks for", n.node)
	case host:
		return nil, nil
	case n.own == nil:
		return nil, reason.Errorf(job.BadSpec, "jobs cannot have a network of their own on %s: %s", n.node, n.why)
	}
	g, err := n.gang(id, o)
	if err != nil {
		return nil, err
	}
	ns, err := namespace()
	if err != nil {
		return nil, err
	}
	at, err := n.own.Attach(id.String(), ns, g)
	if err != nil {
		ns.Close()
		return nil, err
	}
	a := &Attachment{net: n.own, at: at, gang: g}
	if g != nil {
		a.names = names(o)
	}
	err = a.listen(n, o.Spec.Request.Docker.PortMappings)
	if err == nil {
		err = n.own.Publish(id.String(), hostPorts(a.ports))
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
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

// Hosts is /etc/hosts with the rank's own name in it, and those of its gang.
func (a *Attachment) Hosts(text []byte, name string) []byte {
	if a.gang == nil {
		return netns.Hosts(text, netns.Name{Addr: a.at.Addr, Names: []string{name}})
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
func (a *Attachment) Handover(h *oci.Handover) {
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
