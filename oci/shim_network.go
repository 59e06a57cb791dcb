package oci

import (
	"net/netip"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/handed"
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

// takeNetwork takes hold of what was handed over and makes the container use it.
func (s *shim) takeNetwork() (err error) {
	cfg := s.cfg.Network
	if cfg == nil {
		return nil
	}
	ns, listeners := s.received.Network(len(cfg.Ports))
	for _, p := range s.parts {
		for i, ref := range p.Spec.Linux.Namespaces {
			if ref.Type == specs.NetworkNamespace {
				p.Spec.Linux.Namespaces[i].Path = handed.PathOf(ns)
			}
		}
	}
	s.network, err = netns.NewService(netns.Served{Namespace: ns, Addr: cfg.Addr, Ports: cfg.Ports, Listeners: listeners, Servers: cfg.Relay})
	return err
}
