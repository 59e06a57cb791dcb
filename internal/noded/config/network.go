package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"gbatch/oci/netns"
)

// Network is how jobs see the network.
type Network struct {
	// Mode is bridge, which gives each job a network of its own, host, which
	// gives none, or auto: bridge where the machine can do it and no other
	// firewall is in the way. Where jobs cannot have one of their own, only those
	// run that may use the node's. Default auto.
	Mode string `yaml:"mode"`
	// AllowHost lets jobs use the node's own network if they ask for it, of
	// projects that may.
	AllowHost bool `yaml:"allowHost"`
	// Subnet is where jobs' addresses come from, /16 to /29. Jobs cannot reach
	// anything else that has these addresses. Default 10.213.0.0/20.
	Subnet string `yaml:"subnet"`
	// Ports are where mapped ports come from that a job does not choose, as
	// FIRST-LAST. Default 20000-29999.
	Ports string `yaml:"ports"`
	// HostIP is the address of the node that mapped ports listen on where the
	// job says none. Default: all.
	HostIP string `yaml:"hostIp"`
	// DNS are jobs' name servers. Default: the node's.
	DNS []string `yaml:"dns"`
	// HostPorts are TCP ports of services on this machine that jobs may reach
	// at its addresses, as a license server's. Default: none. At most 64.
	HostPorts []int `yaml:"hostPorts"`
}

// The modes.
const (
	NetworkAuto   = "auto"
	NetworkBridge = "bridge"
	NetworkHost   = "host"
)

// setDefaults fills in what was not given.
func (c *Network) setDefaults() {
	setDefault(&c.Mode, NetworkAuto)
	setDefault(&c.Subnet, netns.DefaultSubnet.String())
	setDefault(&c.Ports, fmt.Sprintf("%d-%d", netns.DefaultPorts.First, netns.DefaultPorts.Last))
}

// NetworkSettings is a NetworkConfig in the words of the packages below.
type NetworkSettings struct {
	Netns  netns.Config
	Ports  netns.PortRange
	HostIP netip.Addr // invalid: all
}

// NetworkSettings translates the configuration and calls bad for what is wrong.
func (c *Config) NetworkSettings(bad func(key, format string, args ...any)) NetworkSettings {
	n := c.Network
	s := NetworkSettings{Netns: netns.Config{Node: c.Name}}
	var err error
	if s.Netns.Subnet, err = netip.ParsePrefix(n.Subnet); err != nil {
		bad("network.subnet", "%q: write it as %s", n.Subnet, netns.DefaultSubnet)
	}
	for _, text := range n.DNS {
		a, err := netip.ParseAddr(text)
		if err != nil {
			bad("network.dns", "%q is no IP address", text)
			continue
		}
		s.Netns.DNS = append(s.Netns.DNS, a)
	}
	if len(n.HostPorts) > maxListed {
		bad("network.hostPorts", "%d of them: at most %d", len(n.HostPorts), maxListed)
	}
	for _, p := range n.HostPorts {
		if p < 1 || p > 65535 {
			bad("network.hostPorts", "%d: must be 1 to 65535", p)
		}
		s.Netns.HostPorts = append(s.Netns.HostPorts, uint16(p))
	}
	if n.HostIP != "" {
		if s.HostIP, err = netip.ParseAddr(n.HostIP); err != nil {
			bad("network.hostIp", "%q is no IP address", n.HostIP)
		}
	}
	if s.Ports, err = parsePorts(n.Ports); err != nil {
		bad("network.ports", "%v", err)
	}
	return s
}

func parsePorts(text string) (netns.PortRange, error) {
	first, last, _ := strings.Cut(text, "-")
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a < 1024 || b < a {
		return netns.PortRange{}, fmt.Errorf("%q: write two ports from 1024 on, as %d-%d", text, netns.DefaultPorts.First, netns.DefaultPorts.Last)
	}
	return netns.PortRange{First: uint16(a), Last: uint16(b)}, nil
}

func checkNetworkConfig(c *Config, bad func(string, string, ...any)) {
	switch c.Network.Mode {
	case NetworkAuto, NetworkBridge:
	case NetworkHost:
		if !c.Network.AllowHost {
			bad("network.allowHost", "false with mode host leaves jobs no network: set it, or another mode")
		}
	default:
		bad("network.mode", "%q: use auto, bridge or host", c.Network.Mode)
	}
	s := c.NetworkSettings(bad)
	s.Netns.Node = "any" // the name is checked elsewhere
	if err := s.Netns.Validate(); err != nil {
		for line := range strings.Lines(err.Error()) {
			key, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			bad("network."+key, "%s", text)
		}
	}
}
