package network

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/oci/hostnet"
	"gbatch/oci/netns"
)

// Network is what jobs can have of the network here.
type Network struct {
	node     string
	own      *netns.Network // nil: jobs cannot have one of their own
	ahead    ahead
	leaving  leaving
	why      string // so
	settings config.NetworkSettings
	noHost   bool
	address  netip.Addr // of the node, for gangs; invalid: ranks cannot share a network with those of other nodes
	noGangs  error      // why so
	apart    bool       // two ranks of one job cannot share a network here
	swept    bool       // it is known which ranks have one
	holder   Holder
}

// Holder says which job of this node has a port, if one has.
type Holder func(port uint16) (job.Number, bool)

// Open makes the machine ready for jobs' own networks, if it shall be and can.
// Address is the one by which other nodes reach this one.
func Open(c *config.Config, address string, log *slog.Logger, holder Holder) (*Network, error) {
	n := &Network{node: c.Name, noHost: !c.Network.AllowHost, holder: holder}
	if !n.noHost {
		if err := hostnet.Probe(); err != nil {
			n.noHost = true
			log.Warn("jobs cannot use the node's network here, though it is allowed: they cannot be kept from its loopback addresses", "error", err)
		}
	}
	n.settings = c.NetworkSettings(func(string, string, ...any) {}) // checked before
	if c.Network.Mode == config.NetworkHost {
		n.why = "this node is configured so"
		return n, nil
	}
	err := usable(c)
	if err == nil {
		n.own, err = netns.Open(n.settings.Netns)
	}
	switch {
	case err == nil:
		n.ahead = ahead{own: n.own, most: c.Launches, log: log}
		n.leaving = leaving{detach: n.own.Detach, log: log}
		if n.address, n.noGangs = gangAddress(address); n.noGangs != nil {
			log.Warn("jobs on several nodes cannot run here, unless they may use the node's network", "error", n.noGangs)
		} else if err := netns.ProbeTogether(); err != nil {
			n.apart = true
			log.Warn("ranks of one job cannot be here together: each has another node", "error", err)
		}
		return n, nil
	case c.Network.Mode == config.NetworkBridge:
		return n, fmt.Errorf("give jobs networks of their own: %w", err)
	}
	n.why = "gnoded check on this node says why"
	log.Warn("jobs cannot have networks of their own here: only those run that may use the node's", "error", err)
	return n, nil
}

// usable says what keeps jobs from having networks of their own.
func usable(c *config.Config) error {
	if err := netns.Probe(); err != nil {
		return err
	}
	chains, err := netns.Conflicts(c.Name)
	if err != nil {
		return err
	}
	// Whether its owner has made an exception for us cannot be told from here;
	// mode bridge says that he has.
	if c.Network.Mode == config.NetworkAuto && len(chains) > 0 {
		return fmt.Errorf("the firewall drops what is forwarded, in %s", strings.Join(chains, ", "))
	}
	return nil
}

// gangAddress is the node's address for gangs, if it can take part in any.
func gangAddress(address string) (netip.Addr, error) {
	a, err := netns.GangAddress(address)
	if err == nil {
		err = netns.ProbeGang()
	}
	if err != nil {
		return netip.Addr{}, err
	}
	return a, nil
}

// Gangs says whether ranks can share a network with those of other nodes.
func (n *Network) Gangs() bool { return n.address.IsValid() }

// Together says whether several ranks of one job can share a network here.
func (n *Network) Together() bool { return n.Gangs() && !n.apart }

// Bridged says whether jobs can have networks of their own.
func (n *Network) Bridged() bool { return n.own != nil }

// NoHost says that jobs may not use the node's.
func (n *Network) NoHost() bool { return n.noHost }

// Close leaves the rules that keep running jobs apart, and nothing else.
func (n *Network) Close(running int) error {
	if n == nil || n.own == nil {
		return nil
	}
	n.ahead.close()
	n.leaving.close()
	n.own.Close()
	if !n.swept || running > 0 {
		return nil
	}
	return netns.Remove(n.node)
}

// Kept is a rank that runs, as it was recorded.
type Kept struct {
	Link  string // see Attachment.Link
	Ports []job.PortMapping
	Order *api.RunOrder
}

// Sweep takes away networks that belong to no rank that runs, and opens the
// ports and tunnels of those that do. It returns whose it took away.
func (n *Network) Sweep(running map[job.RankID]Kept) ([]string, error) {
	if n.own == nil {
		if len(running) > 0 {
			return nil, nil // some may still have one, from before the configuration changed
		}
		return nil, netns.Remove(n.node)
	}
	var errs []error
	for id, k := range running {
		g, err := n.gang(id, k.Order)
		if err != nil {
			errs = append(errs, fmt.Errorf("network of the gang of rank %s: %w", id, err))
		}
		n.own.Keep(id.String(), k.Link, hostPorts(k.Ports), g)
	}
	gone, err := n.own.Sweep()
	n.swept = err == nil
	return gone, errors.Join(append(errs, err)...)
}

// Ensure puts back what something else on the machine has removed, and says
// whether anything was.
func (n *Network) Ensure() (repaired bool, err error) { return n.own.Ensure() }

// Detach removes what the host has of an ended rank's network, or will do so within a
// second, together with others'. The kernel takes its time for it, and does so by itself too.
func (n *Network) Detach(id job.RankID) error {
	if n.own == nil || n.leaving.leave(id.String()) {
		return nil
	}
	return n.own.Detach(id.String())
}
