package netns

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	vns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The tests run in a network namespace of their own, which is the "host" to
// them: the machine's own network is not touched.
const (
	inHostEnv = "GBATCH_NETNS_TEST"
	crashEnv  = "GBATCH_NETNS_CRASH"
)

var unable error // why nothing can be tested here

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(crashEnv) != "":
		crashHere(os.Getenv(crashEnv))
		os.Exit(1) // it was to be killed
	case os.Getenv(inHostEnv) != "":
		if unable = Probe(); unable == nil {
			unable = raiseLoopback()
		}
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inHostEnv+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	err := cmd.Run()
	if cmd.ProcessState == nil {
		unable = fmt.Errorf("make a network namespace for the tests: %w", err)
		os.Exit(m.Run())
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

func raiseLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

func needNetwork(t testing.TB) {
	t.Helper()
	if unable != nil {
		t.Skipf("NOT TESTED: %v", unable)
	}
}

const testNode = "node-under-test"

// Addresses of the "host" and of what lies outside of it.
var (
	hostAddr    = netip.MustParseAddr("198.51.100.1")
	outsideAddr = netip.MustParseAddr("198.51.100.2")
)

// openNetwork is a Network that is gone after the test.
func openNetwork(t testing.TB, cfg Config) *Network {
	t.Helper()
	needNetwork(t)
	if cfg.Node == "" {
		cfg.Node = testNode
	}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.Close()
		if err := Remove(cfg.Node); err != nil {
			t.Error(err)
		}
	})
	return n
}

func attach(t testing.TB, n *Network, owner string) *Attached {
	t.Helper()
	a, err := n.Attach(owner, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Namespace.Close()
		if err := n.Detach(owner); err != nil {
			t.Error(err)
		}
	})
	return a
}

// outside is a machine beyond the host, without a route back to networks.
func outside(t testing.TB) *os.File {
	t.Helper()
	needNetwork(t)
	ns, err := newNamespace()
	must(t, err)
	up := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "up0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.Fd())}
	must(t, netlink.LinkAdd(up))
	t.Cleanup(func() {
		_ = netlink.LinkDel(up)
		ns.Close()
	})
	must(t, netlink.AddrAdd(up, onNet(hostAddr)))
	must(t, netlink.LinkSetUp(up))
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: up.Index, Gw: outsideAddr.AsSlice()}))
	h, err := netlink.NewHandleAt(vns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	must(t, err)
	defer h.Close()
	for _, name := range []string{"lo", "eth0"} {
		l, err := h.LinkByName(name)
		must(t, err)
		if name == "eth0" {
			must(t, h.AddrAdd(l, onNet(outsideAddr)))
		}
		must(t, h.LinkSetUp(l))
	}
	return ns
}

func onNet(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(24, 32)}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listenIn opens a listener in a namespace; nil is the host's.
func listenIn(t testing.TB, ns *os.File, addr string) *net.TCPListener {
	t.Helper()
	var l net.Listener
	open := func() (err error) { l, err = net.Listen("tcp", addr); return err }
	var err error
	if ns == nil {
		err = open()
	} else {
		err = inside(ns, open)
	}
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

func portOf(l net.Listener) uint16 {
	return netip.MustParseAddrPort(l.Addr().String()).Port()
}

// serveName answers each connection with who it comes from and a text.
func serveName(l net.Listener, text string) {
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			from := netip.MustParseAddrPort(c.RemoteAddr().String()).Addr().Unmap()
			fmt.Fprintf(c, "%s %s", from, text)
			c.Close()
		}
	}()
}

// ask connects from a namespace, the host's if nil, and reads the answer.
func ask(ns *os.File, to netip.AddrPort) (string, error) {
	var c net.Conn
	var err error
	if ns == nil {
		c, err = net.DialTimeout("tcp", to.String(), dialTimeout)
	} else {
		var tcp *net.TCPConn
		tcp, err = Dial(background, ns, to)
		c = tcp
	}
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return "", err
	}
	var b strings.Builder
	buf := make([]byte, 256)
	for {
		k, err := c.Read(buf)
		b.Write(buf[:k])
		if err != nil {
			if b.Len() == 0 {
				return "", err
			}
			return b.String(), nil
		}
	}
}

// ours lists the interfaces of all nodes that are on the host.
func ours(t testing.TB) []string {
	t.Helper()
	links, err := netlink.LinkList()
	must(t, err)
	var list []string
	for _, l := range links {
		if isNodes(l.Attrs().Name) {
			list = append(list, l.Attrs().Name)
		}
	}
	return list
}

// eventually polls until ok, as the kernel takes namespaces apart in its own time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
