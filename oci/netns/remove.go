package netns

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// remove deletes interfaces of the host with their other ends and routes; one that went
// with its namespace is no error. All go at once, as a group: for each request the kernel
// waits, with the lock of all networks held, until nobody can see the interfaces any
// more, some tens of milliseconds, and it looks through its whole table of connections for
// those of each interface unless sixteen such looks wait already.
func (n *Network) remove(links ...string) error {
	leaving := nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(n.leavingGroup()))
	for _, link := range links {
		err := change(unix.RTM_SETLINK, nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(link)), leaving)
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove interface %s: %w", link, err)
		}
	}
	if len(links) == 0 {
		return nil
	}
	if err := change(unix.RTM_DELLINK, leaving); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %d interfaces: %w", len(links), err)
	}
	return nil
}

// change asks the kernel for a change of interfaces, by a socket of its own: others need
// not wait for the answer.
func change(what int, attributes ...nl.NetlinkRequestData) error {
	r := nl.NewNetlinkRequest(what, unix.NLM_F_ACK)
	r.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	for _, a := range attributes {
		r.AddData(a)
	}
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// leavingGroup is the group of interfaces that this node is about to delete: a number that
// nobody else comes upon. Those of everybody else are in group 0, or in small ones.
func (n *Network) leavingGroup() uint32 {
	sum := sha256.Sum256([]byte("leaving " + n.table))
	return binary.BigEndian.Uint32(sum[:]) | 1<<30
}
