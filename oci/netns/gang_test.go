package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	vns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// machine is a network namespace that stands for a machine of a lab; all of
// them are on one segment.
type machine struct {
	t    testing.TB
	ns   *os.File
	addr netip.Addr
}

// lab makes n machines, 198.51.100.11 and so on.
func lab(t testing.TB, n int) []*machine {
	t.Helper()
	needNetwork(t)
	if err := ProbeGang(); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	segment := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "lab0"}}
	must(t, netlink.LinkAdd(segment))
	t.Cleanup(func() { must(t, netlink.LinkDel(segment)) })
	must(t, netlink.LinkSetUp(segment))
	var list []*machine
	for i := range n {
		ns, err := newNamespace()
		must(t, err)
		m := &machine{t: t, ns: ns, addr: netip.AddrFrom4([4]byte{198, 51, 100, byte(11 + i)})}
		t.Cleanup(func() { ns.Close() })
		link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("lab-m", i)}, PeerName: "port0", PeerNamespace: netlink.NsFd(ns.Fd())}
		must(t, netlink.LinkAdd(link))
		t.Cleanup(func() { _ = netlink.LinkDel(link) })
		must(t, netlink.LinkSetMaster(link, segment))
		must(t, netlink.LinkSetUp(link))
		m.do(func() error {
			port, err := netlink.LinkByName("port0")
			if err != nil {
				return err
			}
			return errors.Join(raiseLoopback(), netlink.AddrAdd(port, onNet(m.addr)), netlink.LinkSetUp(port))
		})
		list = append(list, m)
	}
	return list
}

// do runs f on the machine.
func (m *machine) do(f func() error) {
	m.t.Helper()
	if err := inside(m.ns, f); err != nil {
		m.t.Fatal(err)
	}
}

// daemon is a node on the machine, until the test ends.
func (m *machine) daemon(name string) (n *Network) {
	m.t.Helper()
	m.do(func() (err error) { n, err = Open(Config{Node: name}); return err })
	m.t.Cleanup(func() {
		n.Close()
		m.do(func() error { return Remove(name) })
	})
	return n
}

func (m *machine) attach(n *Network, owner string, g *Gang) (a *Attached) {
	m.t.Helper()
	m.do(func() (err error) { a, err = n.Attach(owner, nil, g); return err })
	m.t.Cleanup(func() {
		a.Namespace.Close()
		m.do(func() error { return n.Detach(owner) })
	})
	return a
}

// testGang is the place of a rank of those that run at the given addresses.
func testGang(rank int, nodes ...netip.Addr) *Gang {
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 214, 0, byte(i + 1)}) }
	g := &Gang{Inside: netip.PrefixFrom(at(rank), 16), Tunnel: uint32(0xabc00 + rank), Node: nodes[rank]}
	for i, node := range nodes {
		if i != rank {
			g.Peers = append(g.Peers, Peer{Inside: at(i), Tunnel: uint32(0xabc00 + i), Node: node})
		}
	}
	return g
}

// TestGangReachesItself: ranks on three machines.
func TestGangReachesItself(t *testing.T) {
	m := lab(t, 4)
	reachEachOther(t, m[:3], m[3])
}

// TestGangOfNodesOfOneMachine: two ranks are of nodes on one machine, which
// kernels as old as 6.1 do not connect.
func TestGangOfNodesOfOneMachine(t *testing.T) {
	m := lab(t, 3)
	reachEachOther(t, []*machine{m[0], m[1], m[0]}, m[2])
}

// TestGangOnOneNode: two ranks are on one node, which has one daemon, and a third is elsewhere.
func TestGangOnOneNode(t *testing.T) {
	m := lab(t, 3)
	if err := ProbeTogether(); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	nodes := []netip.Addr{m[0].addr, m[0].addr, m[1].addr}
	near, far := m[0].daemon("near"), m[1].daemon("far")
	ranks := []*Attached{m[0].attach(near, "rank0", testGang(0, nodes...)), m[0].attach(near, "rank1", testGang(1, nodes...)), m[1].attach(far, "rank2", testGang(2, nodes...))}
	meet(t, ranks, nodes)
	// The daemon comes back, and so do its rules; one of its ranks ends.
	near.Keep("rank0", ranks[0].Link, nil, testGang(0, nodes...))
	near.Keep("rank1", ranks[1].Link, nil, testGang(1, nodes...))
	m[0].do(func() error { _, err := near.Sweep(); return err })
	meet(t, ranks, nodes)
	m[0].do(func() error { return near.Detach("rank0") })
	if got := len(m[0].elements("near")); got != 3 { // one tunnel, with two nodes that may send into it
		t.Errorf("the table has %d elements of the rank that is left, want 3", got)
	}
}

// reachEachOther: ranks on these machines reach each other on any port, with
// whole packets of the tunnel's size, and the outside as other networks do.
func reachEachOther(t *testing.T, on []*machine, outside *machine) {
	t.Helper()
	var nodes []netip.Addr
	for _, at := range on {
		nodes = append(nodes, at.addr)
	}
	var ranks []*Attached
	for i, at := range on {
		ranks = append(ranks, at.attach(at.daemon(fmt.Sprint("n", i)), "rank", testGang(i, nodes...)))
	}
	meet(t, ranks, nodes)
	out := listenIn(t, outside.ns, "0.0.0.0:0")
	serveName(out, "outside")
	for i, r := range ranks {
		got, err := ask(r.Namespace, netip.AddrPortFrom(outside.addr, portOf(out)))
		if want := nodes[i].String() + " outside"; err != nil || got != want {
			t.Errorf("rank %d to the outside: %q, %v, want %q", i, got, err, want)
		}
	}
	h, err := netlink.NewHandleAt(vns.NsHandle(ranks[0].Namespace.Fd()), unix.NETLINK_ROUTE)
	must(t, err)
	defer h.Close()
	l, err := h.LinkByName("eth0")
	must(t, err)
	if got := l.Attrs().MTU; got != 1450 {
		t.Errorf("MTU of the gang's interface is %d, want 1450", got)
	}
	if l.Attrs().RawFlags&unix.IFF_RUNNING == 0 {
		t.Error("the gang's interface is not said to run")
	}
}

// meet has each rank reach each other one, and itself.
func meet(t *testing.T, ranks []*Attached, nodes []netip.Addr) {
	t.Helper()
	const size = 1 << 20
	for i, to := range ranks {
		inTo := listenIn(t, to.Namespace, "0.0.0.0:0")
		at := netip.AddrPortFrom(testGang(i, nodes...).Inside.Addr(), portOf(inTo))
		serveName(inTo, strings.Repeat("x", size))
		for k, from := range ranks {
			got, err := ask(from.Namespace, at)
			want := fmt.Sprintf("%s %s", testGang(k, nodes...).Inside.Addr(), strings.Repeat("x", size))
			if err != nil || got != want {
				t.Errorf("rank %d to rank %d: %d bytes, %.30q, %v", k, i, len(got), got, err)
			}
		}
	}
}

// forged is a packet of VXLAN that brings a datagram to a rank's port 9.
func forgedPacket(g *Gang, text string) []byte {
	to := g.Inside.Addr().As4()
	from := to
	from[3] ^= 0x40
	udp := binary.BigEndian.AppendUint16(nil, 1234)
	udp = binary.BigEndian.AppendUint16(udp, 9)
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(text)))
	udp = append(append(udp, 0, 0), text...)
	ip := []byte{0x45, 0}
	ip = binary.BigEndian.AppendUint16(ip, uint16(20+len(udp)))
	ip = append(ip, 0, 1, 0, 0, 64, unix.IPPROTO_UDP, 0, 0)
	ip = append(append(ip, from[:]...), to[:]...)
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	frame := slices.Concat([]byte(hardware(g.Inside.Addr())), []byte{2, 0, 0, 0, 0, 1, 8, 0}, ip, udp)
	return slices.Concat([]byte{8, 0, 0, 0}, tunnelKey(g.Tunnel), frame)
}

// send sends a datagram from a namespace; that it is refused at once is fine.
func send(t testing.TB, ns *os.File, to netip.AddrPort, data []byte) {
	t.Helper()
	must(t, inside(ns, func() error {
		c, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.WriteToUDPAddrPort(data, to)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) {
			return nil
		}
		return err
	}))
}

// TestGangTakesNothingFromStrangers: what a gang's tunnel takes are packets of
// the kernels of its own nodes. The packet that is tried is one that would
// arrive: it does from a node of the gang that lets a program send it.
func TestGangTakesNothingFromStrangers(t *testing.T) {
	m := lab(t, 4)
	member, victim, stranger, careless := m[0], m[1], m[2], m[3]
	nodes := []netip.Addr{member.addr, victim.addr, careless.addr}
	memberNet, victimNet := member.daemon("a"), victim.daemon("b")
	rank0 := member.attach(memberNet, "rank", testGang(0, nodes...))
	g := testGang(1, nodes...)
	rank1 := victim.attach(victimNet, "rank", g)
	other := member.attach(memberNet, "another", nil)
	beside := victim.attach(victimNet, "another", nil)
	otherGang := member.attach(memberNet, "gang", &Gang{
		Inside: netip.MustParsePrefix("10.214.0.9/16"), Tunnel: 0xdef00, Node: member.addr,
		Peers: []Peer{{Inside: g.Inside.Addr(), Tunnel: 0xdef01, Node: victim.addr}},
	})
	var c *net.UDPConn
	must(t, inside(rank1.Namespace, func() (err error) {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 9})
		return err
	}))
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(time.Minute)))
	receive := func(want string) {
		t.Helper()
		buf := make([]byte, 100)
		if k, err := c.Read(buf); err != nil || string(buf[:k]) != want {
			t.Fatalf("got %q, %v, want %q", buf[:k], err, want)
		}
	}
	tunnel := netip.AddrPortFrom(victim.addr, TunnelPort)
	try := func() {
		t.Helper()
		for name, from := range map[string]*os.File{
			"a machine that is no member": stranger.ns, "a container on a member's node": other.Namespace,
			"a container on the same node": beside.Namespace, "a program on a member's node": member.ns,
			"a program on the same node": victim.ns, "another gang": otherGang.Namespace, "a rank of the gang, outside of its network": rank0.Namespace,
		} {
			send(t, from, tunnel, forgedPacket(g, name))
			send(t, from, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), TunnelPort), forgedPacket(g, name+", by loopback"))
			if from != rank0.Namespace {
				send(t, from, netip.AddrPortFrom(g.Inside.Addr(), 9), []byte(name+", directly"))
			}
		}
		send(t, careless.ns, tunnel, forgedPacket(g, "a member"))
		receive("a member") // and so nothing of what was sent before
	}
	try()
	send(t, rank0.Namespace, netip.AddrPortFrom(g.Inside.Addr(), 9), []byte("rank 0"))
	receive("rank 0")

	// It stays so when the next daemon comes, before and after it knows of it.
	victimNet.Close()
	victim.do(func() (err error) { victimNet, err = Open(Config{Node: "b"}); return err })
	try()
	victimNet.Keep("rank", "", nil, g)
	victimNet.Keep("another", "", nil, nil)
	victim.do(func() error { _, err := victimNet.Sweep(); return err })
	try()
	// And when something else removes all rules.
	victim.do(func() error {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		conn.FlushRuleset()
		if err := conn.Flush(); err != nil {
			return err
		}
		_, err = victimNet.Ensure()
		return err
	})
	try()
	victim.do(func() error { return errors.Join(victimNet.Detach("rank"), victimNet.Detach("another")) })
	if got := victim.elements("b"); got != nil {
		t.Errorf("left in the table: %x", got)
	}
	victimNet.Close()
}

// elements are those of the sets about gangs in a node's table.
func (m *machine) elements(node string) (keys [][]byte) {
	m.do(func() error {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		t := &nftables.Table{Name: tableName(node), Family: nftables.TableFamilyINet}
		for _, name := range []string{"tunnels", "members"} {
			list, err := conn.GetSetElements(&nftables.Set{Table: t, Name: name})
			if err != nil {
				return err
			}
			for _, e := range list {
				keys = append(keys, e.Key)
			}
		}
		return nil
	})
	return keys
}

// TestGangOfManyNodes: more members than fit into one message to the kernel.
func TestGangOfManyNodes(t *testing.T) {
	m := lab(t, 1)[0]
	n := m.daemon("n")
	g := &Gang{Inside: netip.MustParsePrefix("10.214.0.1/16"), Tunnel: 1<<24 - 1, Node: m.addr}
	for i := range 3 * maxElements {
		g.Peers = append(g.Peers, Peer{Tunnel: uint32(i + 1), Inside: netip.AddrFrom4([4]byte{10, 214, byte(1 + i/250), byte(1 + i%250)}),
			Node: netip.AddrFrom4([4]byte{192, 0, byte(i / 250), byte(1 + i%250)})})
	}
	m.attach(n, "rank", g)
	if got := len(m.elements("n")); got != len(g.Peers)+1 {
		t.Errorf("the table has %d elements, want %d", got, len(g.Peers)+1)
	}
	m.do(func() error { return n.Detach("rank") })
	if got := len(m.elements("n")); got != 0 {
		t.Errorf("%d elements are left", got)
	}
}

// TestGangAfterKill: a daemon that is killed while it makes a gang's network
// leaves nothing that the next one does not take away.
func TestGangAfterKill(t *testing.T) {
	m := lab(t, 1)[0]
	g := testGang(0, m.addr, netip.MustParseAddr("198.51.100.99"))
	var n *Network
	for _, at := range append(slices.Clone(steps), "members", "tunnel") {
		m.do(func() (err error) { n, err = Open(Config{Node: "n"}); return err })
		var ns *os.File
		n.trace = func(step string) {
			if step == at {
				panic(step) // nothing after it happens, and nothing is undone
			}
		}
		m.do(func() error {
			defer func() { _ = recover() }()
			_, _ = n.Attach("rank", ns, g)
			return nil
		})
		n.Close()
		m.do(func() (err error) {
			if n, err = Open(Config{Node: "n"}); err == nil {
				_, err = n.Sweep()
			}
			return err
		})
		if got := m.elements("n"); got != nil {
			t.Errorf("killed at %s: left in the table: %x", at, got)
		}
		var left []string
		m.do(func() error {
			links, err := netlink.LinkList()
			for _, l := range links {
				left = append(left, l.Attrs().Name)
			}
			return err
		})
		slices.Sort(left)
		if diff := cmp.Diff([]string{"lo", "port0"}, left); diff != "" {
			t.Errorf("killed at %s: interfaces (-want +got):\n%s", at, diff)
		}
		n.Close()
	}
	m.do(func() error { return Remove("n") })
}
