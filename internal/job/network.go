package job

import (
	"fmt"
	"net/netip"

	"gbatch/internal/document"
)

// Network is what a container sees of the network.
type Network string

// The networks. Which one an empty word stands for is said by [Spec.Network].
const (
	NetworkBridge Network = "bridge" // its own address, and out through the node's; of a gang, also one that its ranks share
	NetworkHost   Network = "host"   // the node's own
)

// Network is what the job has: its own, unless it asks for its nodes'.
func (s *Spec) Network() Network {
	if s.Gbatch != nil && s.Gbatch.Network == NetworkHost {
		return NetworkHost
	}
	return NetworkBridge
}

// PortMapping makes a TCP port of the container reachable at its node.
type PortMapping struct {
	ContainerPort int    `json:"containerPort"`
	HostPort      int    `json:"hostPort,omitempty"` // 0: the node chooses; never in a node's report
	HostIP        string `json:"hostIp,omitempty"`   // address of the node; empty: all of them
}

const (
	maxPort     = 65535
	minHostPort = 1024 // those below are the node's own services
)

var portFields = []field[PortMapping]{
	{"containerPort", func(d *decoder, n *node, m *PortMapping) { d.integer(unquoted(n), &m.ContainerPort, 1, maxPort) }, true},
	{"hostPort", readHostPort, false},
	{"hostIp", func(d *decoder, n *node, m *PortMapping) { d.str(n, &m.HostIP, hostIP) }, false},
}

// readPorts reads an array of mappings, each an object or the container's port
// alone.
func readPorts(d *decoder, n *node, c *Docker) {
	at := map[int]int{} // entry by the container's port
	d.elements(n, maxPortMappings, func(i int, n *node) {
		var m PortMapping
		before := d.Count()
		switch n = unquoted(n); n.Kind {
		case document.NumberKind:
			d.integer(n, &m.ContainerPort, 1, maxPort)
		case document.ObjectKind:
			document.Object(d, n, portFields, &m)
		default:
			d.WrongKind(n, "a port or an object { }")
		}
		if d.Count() > before {
			return
		}
		if first, ok := at[m.ContainerPort]; ok {
			d.Problem(n, fmt.Sprintf("maps port %d, as entry [%d] does", m.ContainerPort, first), "map each port once")
			return
		}
		for _, o := range c.PortMappings {
			if m.HostPort != 0 && m.HostPort == o.HostPort && (m.HostIP == o.HostIP || m.HostIP == "" || o.HostIP == "") {
				d.Problem(n, fmt.Sprintf("maps to the node's port %d, as entry [%d] does", m.HostPort, at[o.ContainerPort]), "give each its own hostPort, or none")
				return
			}
		}
		at[m.ContainerPort] = i
		c.PortMappings = append(c.PortMappings, m)
	})
}

func readHostPort(d *decoder, n *node, m *PortMapping) {
	var port int
	before := d.Count()
	d.integer(n, &port, 0, maxPort)
	switch {
	case d.Count() > before:
	case 0 < port && port < minHostPort:
		d.Problem(n, fmt.Sprintf("must be at least %d, is %d: the ports below belong to the node's own services", minHostPort, port), "leave it out and the node chooses a free one")
	default:
		m.HostPort = port
	}
}

// hostIP wants an IP address as it is usually written.
func hostIP(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || a.String() != s {
		return fmt.Sprintf("must be an IP address of the node such as 192.0.2.7, is %s", document.Quote(s))
	}
	return ""
}

func networkWord(s string) string {
	if n := Network(s); n != NetworkBridge && n != NetworkHost {
		return fmt.Sprintf("must be %q or %q, is %s", NetworkBridge, NetworkHost, document.Quote(s))
	}
	return ""
}

// checkNetwork finds what cannot be together. gn is the document's "gbatch".
func (d *decoder) checkNetwork(gn *node, s *Spec) {
	ports := len(s.Request.Docker.PortMappings) > 0
	switch g := s.Gbatch; {
	case g.ranks() > 1 && ports:
		d.ProblemAt(gn, "nodes", "cannot be combined with request.docker.portMappings: ports are mapped for jobs on one node",
			"remove portMappings: gexec --forward reaches a port of a rank")
	case g.Network == NetworkHost && ports:
		d.ProblemAt(gn, "network", `is "host", in which ports are not mapped: a service is reached at the node's address and the port that it listens on`,
			"remove it or request.docker.portMappings")
	}
}
