package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var background = context.Background()

func TestProbe(t *testing.T) {
	needNetwork(t)
	if err := Probe(); err != nil {
		t.Fatal(err)
	}
	if got := ours(t); got != nil {
		t.Errorf("probe left %v", got)
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"good":        {Config{Node: "n"}, ""},
		"name":        {Config{}, "node: the name is missing"},
		"host_bits":   {Config{Node: "n", Subnet: netip.MustParsePrefix("10.0.0.1/24")}, "subnet: 10.0.0.1/24: must be"},
		"too_large":   {Config{Node: "n", Subnet: netip.MustParsePrefix("10.0.0.0/8")}, "subnet: 10.0.0.0/8: must be"},
		"too_small":   {Config{Node: "n", Subnet: netip.MustParsePrefix("10.0.0.0/30")}, "subnet: 10.0.0.0/30: must be"},
		"ipv6":        {Config{Node: "n", Subnet: netip.MustParsePrefix("fd00::/24")}, "subnet: fd00::/24: must be"},
		"dns":         {Config{Node: "n", DNS: []netip.Addr{netip.IPv4Unspecified()}}, "dns: 0.0.0.0 cannot be"},
		"mtu":         {Config{Node: "n", MTU: 100}, "mtu: 100: must be"},
		"all_at_once": {Config{MTU: 100}, "node: the name is missing\nmtu: 100: must be"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.cfg.Validate()
			if got := errorText(err); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEgressIsTranslated(t *testing.T) {
	out := outside(t)
	n := openNetwork(t, Config{})
	a := attach(t, n, "job-1")
	l := listenIn(t, out, "0.0.0.0:0")
	serveName(l, "outside")
	got, err := ask(a.Namespace, netip.AddrPortFrom(outsideAddr, portOf(l)))
	must(t, err)
	// Outside has no route to the container: without translation there would
	// be no answer at all.
	if want := hostAddr.String() + " outside"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNetworksAreApart(t *testing.T) {
	out := outside(t)
	n := openNetwork(t, Config{})
	a, b := attach(t, n, "job-a"), attach(t, n, "job-b")
	inB := listenIn(t, b.Namespace, "0.0.0.0:0")
	serveName(inB, "b")
	onHost := listenIn(t, nil, "0.0.0.0:0")
	serveName(onHost, "host")
	onLoopback := listenIn(t, nil, "127.0.0.1:0")
	serveName(onLoopback, "loopback")
	onLoopback6 := listenIn(t, nil, "[::1]:0")
	serveName(onLoopback6, "loopback")
	onHost6 := listenIn(t, nil, "[::]:0")
	serveName(onHost6, "host")
	inOut := listenIn(t, out, "0.0.0.0:0")
	serveName(inOut, "out")

	atB := netip.AddrPortFrom(b.Addr, portOf(inB))
	if got, err := ask(b.Namespace, atB); err != nil || !strings.HasSuffix(got, " b") {
		t.Fatalf("b does not reach itself: %q, %v", got, err)
	}
	must(t, inside(out, func() error { // somebody outside who knows the way
		return netlink.RouteAdd(&netlink.Route{Dst: single(b.Addr), Gw: hostAddr.AsSlice()})
	}))
	for name, tc := range map[string]struct {
		from *os.File
		to   netip.AddrPort
	}{
		"other_network":         {a.Namespace, atB},
		"host_to_network":       {nil, atB},
		"gateway":               {a.Namespace, netip.AddrPortFrom(n.gateway(), portOf(onHost))},
		"host_address":          {a.Namespace, netip.AddrPortFrom(hostAddr, portOf(onHost))},
		"host_loopback_by_name": {a.Namespace, netip.AddrPortFrom(loopback4, portOf(onLoopback))},
		"host_loopback_mapped":  {a.Namespace, netip.AddrPortFrom(netip.MustParseAddr("::ffff:127.0.0.1"), portOf(onLoopback))},
		"host_loopback_v6":      {a.Namespace, netip.AddrPortFrom(netip.IPv6Loopback(), portOf(onLoopback6))},
		"host_any":              {a.Namespace, netip.AddrPortFrom(netip.IPv4Unspecified(), portOf(onHost))},
		"host_address_mapped":   {a.Namespace, netip.AddrPortFrom(netip.AddrFrom16(hostAddr.As16()), portOf(onHost))},
		"link_local":            {a.Namespace, netip.MustParseAddrPort("169.254.169.254:80")},
		"link_local_mapped":     {a.Namespace, netip.MustParseAddrPort("[::ffff:169.254.169.254]:80")},
		"metadata_azure":        {a.Namespace, netip.MustParseAddrPort("168.63.129.16:80")},
		"metadata_alibaba":      {a.Namespace, netip.MustParseAddrPort("100.100.100.200:80")},
		"metadata_oracle":       {a.Namespace, netip.MustParseAddrPort("192.0.0.192:80")},
		"metadata_v6":           {a.Namespace, netip.MustParseAddrPort("[fd00:ec2::254]:80")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(tc.from, tc.to)
			if err == nil {
				t.Fatalf("reached: %q", got)
			}
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Errorf("no answer at all: %v", err)
			}
		})
	}
	t.Run("outside_to_network", func(t *testing.T) {
		conn, err := dialWithin(out, atB, 300*time.Millisecond)
		if err == nil {
			conn.Close()
			t.Fatal("reached")
		}
	})
	t.Run("host_link_local_v6", func(t *testing.T) {
		link, err := netlink.LinkByName(n.attached["job-a"])
		must(t, err)
		addrs, err := netlink.AddrList(link, unix.AF_INET6)
		must(t, err)
		for _, at := range addrs {
			to, _ := netip.AddrFromSlice(at.IP)
			conn, err := dialWithin(a.Namespace, netip.AddrPortFrom(to.WithZone(inner), portOf(onHost6)), 300*time.Millisecond)
			if err == nil {
				conn.Close()
				t.Errorf("reached %s", to)
			}
		}
	})
	if got, err := ask(a.Namespace, netip.AddrPortFrom(outsideAddr, portOf(inOut))); err != nil || !strings.HasSuffix(got, " out") {
		t.Errorf("a does not reach the outside: %q, %v", got, err)
	}
}

// dialWithin is for what is dropped without an answer.
func dialWithin(ns *os.File, to netip.AddrPort, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(background, limit)
	defer cancel()
	conn, err := Dial(ctx, ns, to)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func TestAbstractSocketsAreApart(t *testing.T) {
	n := openNetwork(t, Config{})
	a := attach(t, n, "job-a")
	l, err := net.Listen("unix", "@gbatch-netns-test")
	must(t, err)
	defer l.Close()
	err = inside(a.Namespace, func() error {
		c, err := net.Dial("unix", "@gbatch-netns-test")
		if err == nil {
			c.Close()
		}
		return err
	})
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("got %v, want connection refused", err)
	}
}

// A network that sends with another one's address is not heard.
func TestForgedAddresses(t *testing.T) {
	out := outside(t)
	n := openNetwork(t, Config{})
	a, b := attach(t, n, "job-a"), attach(t, n, "job-b")
	var heard *net.UDPConn
	must(t, inside(out, func() (err error) {
		heard, err = net.ListenUDP("udp4", &net.UDPAddr{})
		return err
	}))
	defer heard.Close()
	to := netip.AddrPortFrom(outsideAddr, netip.MustParseAddrPort(heard.LocalAddr().String()).Port())
	for _, from := range []netip.Addr{b.Addr, hostAddr, netip.MustParseAddr("203.0.113.9")} {
		sendUDP(t, a.Namespace, netip.AddrPortFrom(from, 9), to, "forged as "+from.String())
	}
	// The same way with the true address: it comes later than the others.
	sendUDP(t, a.Namespace, netip.AddrPortFrom(a.Addr, 9), to, "true")
	must(t, heard.SetReadDeadline(time.Now().Add(10*time.Second)))
	buf := make([]byte, 256)
	k, _, err := heard.ReadFromUDP(buf)
	must(t, err)
	if diff := cmp.Diff("true", string(buf[:k])); diff != "" {
		t.Errorf("first packet (-want +got):\n%s", diff)
	}
}

// sendUDP writes a whole packet, as a program with CAP_NET_RAW can.
func sendUDP(t *testing.T, ns *os.File, from, to netip.AddrPort, text string) {
	t.Helper()
	p := make([]byte, 28, 28+len(text))
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP
	src, dst := from.Addr().As4(), to.Addr().As4()
	copy(p[12:], src[:])
	copy(p[16:], dst[:])
	p[20], p[21] = byte(from.Port()>>8), byte(from.Port())
	p[22], p[23] = byte(to.Port()>>8), byte(to.Port())
	p[24], p[25] = byte((8+len(text))>>8), byte(8+len(text))
	p = append(p, text...)
	must(t, inside(ns, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, p, 0, &unix.SockaddrInet4{Addr: dst})
	}))
}

func TestDetachEndsConnectionsAndFreesTheAddress(t *testing.T) {
	n := openNetwork(t, Config{Subnet: netip.MustParsePrefix("10.99.0.0/29")})
	var last *Attached
	for _, owner := range []string{"1", "2", "3", "4", "5"} {
		last = attach(t, n, owner)
	}
	if _, err := n.Attach("6", nil, nil); !errors.Is(err, ErrFull) {
		t.Fatalf("got %v, want %v", err, ErrFull)
	}
	must(t, n.Detach("5"))
	must(t, n.Detach("5")) // twice is fine
	again := attach(t, n, "6")
	if again.Addr != last.Addr {
		t.Errorf("got %s, want the free address %s", again.Addr, last.Addr)
	}
}

// Networks that are taken away together go all, also when one went by itself, and nobody
// else's with them.
func TestDetachTogether(t *testing.T) {
	one, two := openNetwork(t, Config{Node: "one"}), openNetwork(t, Config{Node: "two"})
	for _, owner := range []string{"a", "b", "c", "stays"} {
		attach(t, one, owner)
	}
	attach(t, two, "a")
	must(t, netlink.LinkDel(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: one.attached["b"]}}))
	stay := []string{one.attached["stays"], two.attached["a"]}
	must(t, one.Detach("a", "b", "unknown", "c"))
	if diff := cmp.Diff(stay, ours(t)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	must(t, one.Detach())
}

// Two nodes of one machine share a subnet without having an address twice.
func TestTwoNodes(t *testing.T) {
	one, two := openNetwork(t, Config{Node: "one"}), openNetwork(t, Config{Node: "two"})
	a, b := attach(t, one, "job"), attach(t, two, "job")
	if a.Addr == b.Addr {
		t.Fatalf("both have %s", a.Addr)
	}
	l := listenIn(t, b.Namespace, "0.0.0.0:0")
	serveName(l, "b")
	if got, err := dialWithin(a.Namespace, netip.AddrPortFrom(b.Addr, portOf(l)), 300*time.Millisecond); err == nil {
		got.Close()
		t.Error("networks of two nodes reach each other")
	}
	if _, err := one.Sweep(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{two.linkName(3)}, ours(t)); diff != "" {
		t.Errorf("interfaces left by one node's sweep (-want +got):\n%s", diff)
	}
}

func TestSubnetInUse(t *testing.T) {
	outside(t)
	_, err := Open(Config{Node: testNode, Subnet: netip.MustParsePrefix("198.51.96.0/20")})
	if want := "subnet 198.51.96.0/20 overlaps 198.51.100.0/24, which is reached by up0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestEnsure(t *testing.T) {
	out := outside(t)
	n := openNetwork(t, Config{})
	a := attach(t, n, "job")
	onHost := listenIn(t, nil, "0.0.0.0:0")
	serveName(onHost, "host")
	must(t, n.Publish("job", []uint16{portOf(onHost)}))
	if repaired, err := n.Ensure(); repaired || err != nil {
		t.Errorf("nothing was broken: %v, %v", repaired, err)
	}
	for name, breakIt := range map[string]func(t *testing.T){
		"table_gone": func(t *testing.T) {
			conn, err := nftables.New()
			must(t, err)
			conn.FlushRuleset()
			must(t, conn.Flush())
		},
		"no_forwarding": func(t *testing.T) { must(t, os.WriteFile(forwardFile, []byte("0"), 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			breakIt(t)
			if repaired, err := n.Ensure(); !repaired || err != nil {
				t.Fatalf("not repaired: %v, %v", repaired, err)
			}
			l := listenIn(t, out, "0.0.0.0:0")
			serveName(l, "outside")
			if _, err := ask(a.Namespace, netip.AddrPortFrom(outsideAddr, portOf(l))); err != nil {
				t.Errorf("way out: %v", err)
			}
			if _, err := ask(a.Namespace, netip.AddrPortFrom(hostAddr, portOf(onHost))); err != nil {
				t.Errorf("published port: %v", err)
			}
		})
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	n := openNetwork(t, Config{})
	a := attach(t, n, "job")
	_ = a
	must(t, Remove(testNode))
	must(t, Remove(testNode)) // twice is fine
	if got := ours(t); got != nil {
		t.Errorf("interfaces left: %v", got)
	}
	if there, err := n.installed(); there || err != nil {
		t.Errorf("table left: %v, %v", there, err)
	}
}

func TestConflicts(t *testing.T) {
	n := openNetwork(t, Config{})
	got, err := Conflicts(testNode)
	must(t, err)
	if got != nil {
		t.Errorf("own chains are no conflict: %v", got)
	}
	conn, err := nftables.New()
	must(t, err)
	policy := nftables.ChainPolicyDrop
	table := conn.AddTable(&nftables.Table{Name: "strict", Family: nftables.TableFamilyIPv4})
	conn.AddChain(&nftables.Chain{
		Name: "FORWARD", Table: table, Type: nftables.ChainTypeFilter, Policy: &policy,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	must(t, conn.Flush())
	defer func() {
		conn.DelTable(table)
		must(t, conn.Flush())
	}()
	got, err = Conflicts(n.cfg.Node)
	must(t, err)
	if diff := cmp.Diff([]string{"strict FORWARD"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMTUOfUplink(t *testing.T) {
	outside(t)
	up, err := netlink.LinkByName("up0")
	must(t, err)
	must(t, netlink.LinkSetMTU(up, 1380))
	n := openNetwork(t, Config{})
	a := attach(t, n, "job")
	must(t, inside(a.Namespace, func() error {
		i, err := net.InterfaceByName(inner)
		if err == nil && i.MTU != 1380 {
			t.Errorf("got %d, want 1380", i.MTU)
		}
		return err
	}))
}

// BenchmarkDetach is for 64 networks, one after the other and together.
func BenchmarkDetach(b *testing.B) {
	n := openNetwork(b, Config{})
	var owners []string
	for i := range 64 {
		owners = append(owners, fmt.Sprint(i))
	}
	alone := func() {
		for _, o := range owners {
			must(b, n.Detach(o))
		}
	}
	for name, detach := range map[string]func(){"alone": alone, "together": func() { must(b, n.Detach(owners...)) }} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				var spaces []*os.File
				for _, o := range owners {
					a, err := n.Attach(o, nil, nil)
					must(b, err)
					spaces = append(spaces, a.Namespace)
				}
				b.StartTimer()
				detach()
				for _, ns := range spaces {
					ns.Close()
				}
			}
		})
	}
}

func BenchmarkAttach(b *testing.B) {
	n := openNetwork(b, Config{})
	for b.Loop() {
		a, err := n.Attach("job", nil, nil)
		must(b, err)
		a.Namespace.Close()
		must(b, n.Detach("job"))
	}
}
