package oci

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/netns"
)

// ShimNetwork describes the network that a shim is handed and keeps up.
type ShimNetwork struct {
	// Addr is the namespace's address.
	Addr netip.Addr `json:"addr"`
	// Ports are ports in the namespace, one for each listener handed over.
	Ports []uint16 `json:"ports,omitempty"`
	// Relay are name servers to be asked for the container; see netns.Relay.
	Relay []netip.AddrPort `json:"relay,omitempty"`
}

// hasOwnNetwork says that a spec asks for a new network namespace.
func hasOwnNetwork(spec *specs.Spec) bool {
	for _, ns := range spec.Linux.Namespaces {
		if ns.Type == specs.NetworkNamespace {
			return ns.Path == ""
		}
	}
	return false
}

// shimNetwork is what a shim was handed. Methods do nothing on nil.
type shimNetwork struct {
	forwards []*netns.Forward
	relay    *netns.Relay
}

// plain says that the shim has nothing to do with the network but to hold it.
func (n *shimNetwork) plain() bool { return n == nil || len(n.forwards) == 0 && n.relay == nil }

// takeNetwork takes hold of what was handed over and makes the container use it.
func (s *shim) takeNetwork() error {
	cfg := s.cfg.Network
	if cfg == nil {
		return nil
	}
	ns, listeners := s.received.network(len(cfg.Ports))
	for _, p := range s.parts {
		for i, ref := range p.Spec.Linux.Namespaces {
			if ref.Type == specs.NetworkNamespace {
				p.Spec.Linux.Namespaces[i].Path = pathOf(ns)
			}
		}
	}
	n := &shimNetwork{}
	for i, port := range cfg.Ports {
		l, err := inheritListener(listeners[i])
		if err != nil {
			return fmt.Errorf("take over the listener for port %d: %w", port, err)
		}
		n.forwards = append(n.forwards, &netns.Forward{Listener: l, Namespace: ns, Addr: cfg.Addr, Port: port})
	}
	if len(cfg.Relay) > 0 {
		relay, err := netns.NewRelay(ns, cfg.Relay)
		if err != nil {
			return err
		}
		n.relay = relay
	}
	s.network = n
	return nil
}

func inheritListener(f *os.File) (*net.TCPListener, error) {
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(errors.New("it is no TCP listener"), l.Close())
	}
	return tcp, nil
}

// serve begins to pass on connections and questions, once the program runs.
// Who connected earlier has waited in the kernel's queue.
func (n *shimNetwork) serve() {
	if n == nil {
		return
	}
	for _, f := range n.forwards {
		go f.Run() // ends with close, its connections with the process
	}
	if n.relay != nil {
		go n.relay.Run() // ends with close
	}
}

// close frees the ports.
func (n *shimNetwork) close() {
	if n == nil {
		return
	}
	for _, f := range n.forwards {
		f.Listener.Close()
	}
	if n.relay != nil {
		n.relay.Close()
	}
}
