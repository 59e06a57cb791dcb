package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Who may send into which tunnel is said by two sets of the node's table:
// tunnels has the numbers of those that end here, members the pairs of a
// node's address and the tunnel that it may send into.

// memberType is the key of members: an address, and a tunnel as it is in
// VXLAN's header.
var memberType = nftables.SetDatatype{Name: "ipv4_addr . integer", Bytes: 8}

// maxElements is how many elements go into one message to the kernel.
const maxElements = 1000

func tunnelKey(number uint32) []byte { return binary.BigEndian.AppendUint32(nil, number<<8) }

func memberKey(node netip.Addr, tunnel uint32) []byte {
	return append(node.AsSlice(), tunnelKey(tunnel)...)
}

// members are the elements of that set for one gang's tunnel.
func (g *Gang) members() []nftables.SetElement {
	var list []nftables.SetElement
	seen := map[netip.Addr]bool{}
	for _, p := range g.Peers {
		if !seen[p.Node] {
			seen[p.Node] = true
			list = append(list, nftables.SetElement{Key: memberKey(p.Node, g.Tunnel)})
		}
	}
	return list
}

func (g *Gang) tunnel() []nftables.SetElement {
	return []nftables.SetElement{{Key: tunnelKey(g.Tunnel)}}
}

// gangSets are the two sets of a table, to change or to look up in.
func gangSets(t *nftables.Table) (tunnels, members *nftables.Set) {
	return &nftables.Set{Table: t, Name: "tunnels", KeyType: nftables.TypeInteger},
		&nftables.Set{Table: t, Name: "members", KeyType: memberType}
}

// admit opens a gang's tunnel for its members, before there is one.
func (n *Network) admit(owner string, g *Gang) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gangs[owner] = g
	return n.changeGang(g, (*nftables.Conn).SetAddElements)
}

// dismiss takes back what admit did. Called with n.mu held.
func (n *Network) dismiss(owner string) error {
	g := n.gangs[owner]
	if g == nil {
		return nil
	}
	delete(n.gangs, owner)
	return n.changeGang(g, (*nftables.Conn).SetDeleteElements)
}

type setChange func(*nftables.Conn, *nftables.Set, []nftables.SetElement) error

// changeGang adds or deletes a gang's elements. What is missing of a table that
// somebody removed is not missed here: Ensure makes all of it.
func (n *Network) changeGang(g *Gang, change setChange) error {
	tunnels, members := gangSets(&nftables.Table{Name: n.table, Family: nftables.TableFamilyINet})
	conn, err := nftables.New()
	if err == nil {
		err = errors.Join(change(conn, tunnels, g.tunnel()), conn.Flush())
	}
	for part := range slices.Chunk(g.members(), maxElements) {
		if err == nil {
			err = errors.Join(change(conn, members, part), conn.Flush())
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("say who may send into tunnel %d: %w", g.Tunnel, err)
	}
	return nil
}

// addGangSets makes the sets of a new table.
func (n *Network) addGangSets(b *builder) (tunnels, members *nftables.Set) {
	tunnels = b.set("tunnels", nftables.TypeInteger, nil)
	members = b.set("members", memberType, nil)
	for _, g := range n.gangs {
		// It fails for constant, interval and timeout sets only.
		_ = b.conn.SetAddElements(tunnels, g.tunnel())
		for part := range slices.Chunk(g.members(), maxElements) {
			_ = b.conn.SetAddElements(members, part)
		}
	}
	return tunnels, members
}

// Parts of rules about tunnels.

// toTunnel is a packet to where nodes take gangs' packets.
func toTunnel(b *builder) []expr.Any {
	return append(protocol(unix.IPPROTO_UDP)(b), load(expr.PayloadBaseTransportHeader, offsetPort, 2), equal(binary.BigEndian.AppendUint16(nil, TunnelPort)))
}

// Registers of four bytes, which lie behind each other.
const (
	reg32      = 8 // the first
	reg32After = reg32 + 1
)

// offsetTunnel is where a VXLAN packet has its tunnel's number and a zero byte:
// behind UDP's header and the flags.
const offsetTunnel = 8 + 4

func loadTunnel(register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: offsetTunnel, Len: 4}
}

// endsHere is a packet into a tunnel of this node. Tunnels of other nodes on
// the same machine are their own tables' matter.
func endsHere(tunnels *nftables.Set) part {
	return func(*builder) []expr.Any {
		return []expr.Any{loadTunnel(1), &expr.Lookup{SourceRegister: 1, SetName: tunnels.Name, SetID: tunnels.ID}}
	}
}

// notMember is a packet from a node that may not send into this tunnel.
func notMember(members *nftables.Set) part {
	return func(*builder) []expr.Any {
		return []expr.Any{
			&expr.Payload{DestRegister: reg32, Base: expr.PayloadBaseNetworkHeader, Offset: offsetSource, Len: 4},
			loadTunnel(reg32After),
			&expr.Lookup{SourceRegister: reg32, SetName: members.Name, SetID: members.ID, Invert: true},
		}
	}
}

// fromProgram is a packet that a program has sent and not the kernel, whose
// sockets nobody owns.
func fromProgram(*builder) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{0xff, 0xff, 0xff, 0xff}},
	}
}
