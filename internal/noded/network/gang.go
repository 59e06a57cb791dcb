package network

import (
	"fmt"
	"net/netip"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/oci/netns"
)

// gang is the rank's place in its gang's network; nil: it has none.
func (n *Network) gang(id job.RankID, o *api.RunOrder) (*netns.Gang, error) {
	switch {
	case o.Ranks < 2 || o.Spec.Network() == job.NetworkHost:
		return nil, nil
	case !n.Gangs():
		return nil, reason.Errorf(job.BadSpec, "ranks on %s cannot share a network with those of other nodes: %v", n.node, n.noGangs)
	case int(id.Rank) >= len(o.Peers):
		return nil, fmt.Errorf("the controller named %d ranks, and not rank %d", len(o.Peers), id.Rank)
	}
	g := &netns.Gang{Node: n.address, Tunnel: o.Peers[id.Rank].Tunnel}
	for i, p := range o.Peers {
		inside, err := netip.ParsePrefix(p.Inside)
		if err != nil || p.Tunnel == 0 {
			return nil, fmt.Errorf("the controller gave rank %d no address in the gang's network: %q, tunnel %d", i, p.Inside, p.Tunnel)
		}
		if i == int(id.Rank) {
			g.Inside = inside
			continue
		}
		node, err := netns.GangAddress(p.Address)
		if err != nil {
			return nil, fmt.Errorf("rank %d on %s: %w", i, p.Node, err)
		}
		g.Peers = append(g.Peers, netns.Peer{Inside: inside.Addr(), Tunnel: p.Tunnel, Node: node})
	}
	return g, nil
}

// names are the gang's ranks, by the names that the job gives them and by those of their
// nodes. Of several on one node the first has the node's name, but to itself each has it.
func names(own int, o *api.RunOrder) []netns.Name {
	var list []netns.Name
	named := map[string]bool{}
	if own < len(o.Peers) {
		named[o.Peers[own].Node] = true
	}
	for i, p := range o.Peers {
		inside, err := netip.ParsePrefix(p.Inside)
		if err != nil {
			continue
		}
		one := netns.Name{Addr: inside.Addr(), Names: slices.Clone(o.Spec.Hosts(i))}
		if i == own || !named[p.Node] {
			named[p.Node] = true
			one.Names = append(one.Names, p.Node)
		}
		if len(one.Names) > 0 {
			list = append(list, one)
		}
	}
	return list
}
