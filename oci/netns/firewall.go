package netns

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"golang.org/x/sys/unix"
)

// The node's table, as nft would print it, with J for the interfaces of jobs and F
// for each of [Forbidden]:
//
//	chain prerouting { type filter hook prerouting priority raw;
//	  iifname J meta nfproto ipv6 drop
//	  iifname J fib saddr . iif oif missing drop        # not its own address
//	}
//	chain input { type filter hook input priority filter;
//	  ip version 4 udp dport 7078 @th,96,32 @tunnels ip saddr . @th,96,32 != @members drop
//	  iifname J ct state established,related accept
//	  iifname J icmp type echo-request accept
//	  iifname J ip daddr @resolvers udp dport 53 accept # and tcp
//	  iifname J tcp dport @open accept
//	  iifname J reject with icmpx admin-prohibited
//	}
//	chain forward { type filter hook forward priority filter;
//	  iifname J oifname J reject
//	  iifname J ip daddr F reject                       # cloud credentials
//	  iifname J udp dport 7078 reject                   # it would come from this node
//	  oifname J ct state established,related accept
//	  oifname J drop
//	}
//	chain output { type filter hook output priority filter;
//	  udp dport 7078 meta skuid != -1 reject            # gangs' packets are the kernel's
//	  oifname J meta nfproto ipv6 drop
//	  oifname J ct state established,related accept
//	  oifname J meta l4proto icmp accept
//	  oifname J reject
//	}
//	chain postrouting { type nat hook postrouting priority srcnat;
//	  ip saddr SUBNET oifname != J masquerade
//	}
//
// An "accept" ends this table's say only; other tables may still refuse.
// Nothing on the host needs to reach into a network from outside: published
// ports are served from within it.

var chainNames = []string{"prerouting", "input", "forward", "output", "postrouting"}

// install puts the table in place of an older one, in one transaction.
func (n *Network) install() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("reach nftables: %w", err)
	}
	n.rules(conn)
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("set up nftables table %s: %w", n.table, firewallHint(err))
	}
	return nil
}

// rules queues the whole table.
func (n *Network) rules(conn *nftables.Conn) {
	t := &nftables.Table{Name: n.table, Family: nftables.TableFamilyINet}
	conn.AddTable(t) // so that there is one to delete
	conn.DelTable(t)
	conn.AddTable(t)
	b := &builder{conn: conn, table: t, jobs: n.links}
	open := b.set("open", nftables.TypeInetService, n.openPorts())
	resolvers := b.set("resolvers", nftables.TypeIPAddr, n.names.directElements())
	tunnels, members := n.addGangSets(b)

	b.chain("prerouting", nftables.ChainHookPrerouting, nftables.ChainPriorityRaw)
	b.rule(fromJob, isIPv6, drop)
	b.rule(fromJob, forged, drop)

	b.chain("input", nftables.ChainHookInput, nftables.ChainPriorityFilter)
	b.rule(isIPv4, toTunnel, endsHere(tunnels), notMember(members), drop)
	b.rule(fromJob, established, accept)
	b.rule(fromJob, echoRequest, accept)
	b.rule(fromJob, protocol(unix.IPPROTO_UDP), destinationIn(resolvers), port53, accept)
	b.rule(fromJob, protocol(unix.IPPROTO_TCP), destinationIn(resolvers), port53, accept)
	b.rule(fromJob, protocol(unix.IPPROTO_TCP), portIn(open), accept)
	b.rule(fromJob, reject)

	b.chain("forward", nftables.ChainHookForward, nftables.ChainPriorityFilter)
	b.rule(fromJob, toJob, reject)
	for _, p := range Forbidden {
		b.rule(fromJob, destination(p), reject)
	}
	b.rule(fromJob, toTunnel, reject)
	b.rule(toJob, established, accept)
	b.rule(toJob, drop)

	b.chain("output", nftables.ChainHookOutput, nftables.ChainPriorityFilter)
	b.rule(toTunnel, fromProgram, reject)
	b.rule(toJob, isIPv6, drop)
	b.rule(toJob, established, accept)
	b.rule(toJob, protocol(unix.IPPROTO_ICMP), accept)
	b.rule(toJob, reject)

	b.chain("postrouting", nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
	b.rule(isIPv4, source(n.cfg.Subnet), notToJob, masquerade)
}

// installed says whether the table is there with all its chains.
func (n *Network) installed() (bool, error) {
	conn, err := nftables.New()
	if err != nil {
		return false, fmt.Errorf("reach nftables: %w", err)
	}
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, fmt.Errorf("list nftables chains: %w", err)
	}
	found := 0
	for _, c := range chains {
		if c.Table.Name == n.table {
			found++
		}
	}
	return found == len(chainNames), nil
}

// uninstall removes the table, if the machine has it.
func (n *Network) uninstall() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("reach nftables: %w", err)
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil // a kernel without nftables has no table
	}
	for _, t := range tables {
		if t.Name == n.table {
			conn.DelTable(t)
		}
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("remove nftables table %s: %w", n.table, err)
	}
	return nil
}

// Publish lets all networks of the node reach the given ports on the node's
// addresses, as they can from outside, until the owner is detached.
func (n *Network) Publish(owner string, ports []uint16) error {
	if len(ports) == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.published[owner] = ports
	return n.setOpen()
}

// unpublish takes an owner's ports back. Called with n.mu held.
func (n *Network) unpublish(owner string) error {
	if _, ok := n.published[owner]; !ok {
		return nil
	}
	delete(n.published, owner)
	return n.setOpen()
}

// setOpen makes the set of open ports what it should be. A table that somebody
// removed is not missed here: Ensure makes all of it.
func (n *Network) setOpen() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("reach nftables: %w", err)
	}
	s := &nftables.Set{
		Table:   &nftables.Table{Name: n.table, Family: nftables.TableFamilyINet},
		Name:    "open",
		KeyType: nftables.TypeInetService,
	}
	conn.FlushSet(s)
	if elements := n.openPorts(); len(elements) > 0 {
		if err := conn.SetAddElements(s, elements); err != nil {
			return fmt.Errorf("open published ports: %w", err)
		}
	}
	if err := conn.Flush(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("open published ports: %w", err)
	}
	return nil
}

// openPorts are the elements of the set of that name.
func (n *Network) openPorts() []nftables.SetElement {
	seen := map[uint16]bool{}
	var list []nftables.SetElement
	add := func(ports []uint16) {
		for _, p := range ports {
			if !seen[p] {
				seen[p] = true
				list = append(list, nftables.SetElement{Key: binaryutil.BigEndian.PutUint16(p)})
			}
		}
	}
	add(n.cfg.HostPorts)
	for _, ports := range n.published {
		add(ports)
	}
	return list
}
