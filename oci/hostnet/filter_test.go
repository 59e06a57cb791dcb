package hostnet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
)

// The tests run in a network namespace of their own, in which the addresses of
// clouds' metadata services are the machine's.
const (
	hostEnv = "GBATCH_TEST_HOST"
	jobEnv  = "GBATCH_TEST_JOB"
)

var metadata = []string{"169.254.169.254", "168.63.129.16", "fd00:ec2::254"}

// linkLocal is an interface with the address fe80::1.
const linkLocal = "ll0"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(jobEnv) != "":
		runJob()
		return
	case os.Getenv(hostEnv) != "" || os.Geteuid() != 0:
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), hostEnv+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// attempt is something that the job tries.
type attempt struct {
	Network string // as tcp4
	To      string // an address; empty port: that of a listener of its own at Listen
	Listen  string
	From    string // it is bound here first
	Sendto  bool   // of UDP: without connecting
}

// try says how an attempt ends: reached, or why not.
func (a attempt) try() (string, error) {
	to := a.To
	if a.Listen != "" {
		l, port, err := listen(a.Network, a.Listen)
		if err != nil {
			return "", err
		}
		defer l()
		to += fmt.Sprint(":", port)
	}
	at, err := netip.ParseAddrPort(to)
	if err != nil {
		return "", err
	}
	err = a.connect(at)
	switch {
	case err == nil:
		return "reached", nil
	case errors.Is(err, unix.EPERM):
		return "not permitted", nil
	case errors.Is(err, unix.ECONNREFUSED):
		return "refused", nil
	}
	return "", err
}

// connect does so by the bare calls: the library would change addresses.
func (a attempt) connect(at netip.AddrPort) error {
	domain, kind := unix.AF_INET, unix.SOCK_STREAM
	if a.Network[3:] == "6" {
		domain = unix.AF_INET6
	}
	if a.Network[:3] == "udp" {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(domain, kind, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if a.From != "" {
		if err := unix.Bind(fd, sockaddr(domain, netip.AddrPortFrom(netip.MustParseAddr(a.From), 0))); err != nil {
			return err
		}
	}
	if a.Sendto {
		return unix.Sendto(fd, []byte("x"), 0, sockaddr(domain, at))
	}
	return unix.Connect(fd, sockaddr(domain, at))
}

func sockaddr(domain int, at netip.AddrPort) unix.Sockaddr {
	if domain == unix.AF_INET {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	zone := uint32(0)
	if at.Addr().IsLinkLocalUnicast() {
		if link, err := net.InterfaceByName(linkLocal); err == nil {
			zone = uint32(link.Index)
		}
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16(), ZoneId: zone}
}

// listen opens a socket of the network's family, at :: of both.
func listen(network, addr string) (closer func(), port uint16, err error) {
	if addr == "::" {
		network = network[:3]
	}
	if network[:3] == "udp" {
		c, err := net.ListenPacket(network, net.JoinHostPort(addr, "0"))
		if err != nil {
			return nil, 0, err
		}
		return func() { c.Close() }, netip.MustParseAddrPort(c.LocalAddr().String()).Port(), nil
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), network, net.JoinHostPort(addr, "0"))
	if err != nil {
		return nil, 0, err
	}
	return func() { l.Close() }, netip.MustParseAddrPort(l.Addr().String()).Port(), nil
}

// runJob tries what it is told on its standard input.
func runJob() {
	var list map[string]attempt
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		panic(err)
	}
	got := map[string]string{}
	for name, a := range list {
		out, err := a.try()
		if err != nil {
			out = "error: " + err.Error()
		}
		got[name] = out
	}
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		panic(err)
	}
}

// group makes a group of the v2 hierarchy that goes with the test.
func group(t *testing.T) *os.File {
	t.Helper()
	host, err := cgroups.Detect()
	if err != nil || host.Mounts[""] == "" || os.Geteuid() != 0 {
		t.Skip("NOT TESTED: needs root and a cgroup v2 hierarchy")
	}
	dir := filepath.Join(host.Mounts[""], fmt.Sprintf("gbatch-hostnet-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Close()
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return f
}

// job runs attempts in a process in a group.
func job(t *testing.T, group *os.File, list map[string]attempt) map[string]string {
	t.Helper()
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), jobEnv+"=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return got
}

// TestFilter: without the filter a job reaches what listens on the machine's
// loopback and on metadata addresses; with it, by no form of the address, but
// its own processes as before, and other addresses too.
func TestFilter(t *testing.T) {
	g := group(t)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	other := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: linkLocal}}
	if err := errors.Join(netlink.LinkAdd(other), netlink.LinkSetUp(other)); err != nil {
		t.Fatal(err)
	}
	at := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}
	if err := netlink.AddrAdd(other, at); err != nil {
		t.Fatal(err)
	}
	for _, a := range append(metadata, "192.0.2.77") {
		ip := netip.MustParseAddr(a)
		at := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}, Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrAdd(lo, at); err != nil {
			t.Fatal(a, err)
		}
	}
	port := map[string]uint16{}
	for _, network := range []string{"tcp4", "tcp6", "udp4", "udp6"} {
		addr := "0.0.0.0"
		if network[3:] == "6" {
			addr = "::1" // and not IPv4 as well
		}
		stop, p, err := listen(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		port[network] = p
	}
	any6, p6, err := listen("tcp6", "::")
	if err != nil {
		t.Fatal(err)
	}
	defer any6()

	attempts, before, after := map[string]attempt{}, map[string]string{}, map[string]string{}
	add := func(name, unfiltered, filtered string, a attempt) {
		attempts[name], before[name], after[name] = a, unfiltered, filtered
	}
	v4, v6 := []string{"127.0.0.1", "127.1.2.3", "127.255.255.254", "0.0.0.0", "169.254.169.254", "168.63.129.16"}, []string{"::1", "::"}
	for _, kind := range []string{"tcp", "udp"} {
		for _, a := range v4 {
			at := fmt.Sprint(":", port[kind+"4"])
			add(kind+" "+a, "reached", "not permitted", attempt{Network: kind + "4", To: a + at})
			add(kind+" mapped "+a, "reached", "not permitted", attempt{Network: kind + "6", To: "[::ffff:" + a + "]" + at})
			if kind == "udp" {
				add("sendto "+a, "reached", "not permitted", attempt{Network: "udp4", To: a + at, Sendto: true})
				add("sendto mapped "+a, "reached", "not permitted", attempt{Network: "udp6", To: "[::ffff:" + a + "]" + at, Sendto: true})
			}
		}
		for _, a := range v6 {
			at := fmt.Sprintf("[%s]:%d", a, port[kind+"6"])
			add(kind+" "+a, "reached", "not permitted", attempt{Network: kind + "6", To: at})
			if kind == "udp" {
				add("sendto "+a, "reached", "not permitted", attempt{Network: "udp6", To: at, Sendto: true})
			}
		}
		add(kind+" own", "reached", "reached", attempt{Network: kind + "4", Listen: "127.0.0.1", To: "127.0.0.1"})
		add(kind+" own on all", "reached", "reached", attempt{Network: kind + "4", Listen: "0.0.0.0", To: "127.0.0.1"})
		add(kind+" own by IPv6", "reached", "reached", attempt{Network: kind + "6", Listen: "::1", To: "[::1]"})
		add(kind+" own, mapped", "reached", "reached", attempt{Network: kind + "6", Listen: "::", To: "[::ffff:127.0.0.1]"})
		add(kind+" another address", "reached", "reached", attempt{Network: kind + "4", To: fmt.Sprint("192.0.2.77:", port[kind+"4"])})
	}
	add("metadata by IPv6", "reached", "not permitted", attempt{Network: "tcp6", To: fmt.Sprintf("[fd00:ec2::254]:%d", p6)})
	add("link-local by IPv6", "reached", "not permitted", attempt{Network: "tcp6", To: fmt.Sprintf("[fe80::1]:%d", p6)})
	// One that would go to another loopback address than the one it names.
	add("unspecified, bound", "reached", "not permitted", attempt{Network: "tcp4", From: "127.0.0.5", To: fmt.Sprint("0.0.0.0:", port["tcp4"])})
	add("nobody listens", "refused", "refused", attempt{Network: "tcp4", To: "127.0.0.1:1"})

	if diff := cmp.Diff(before, job(t, g, attempts)); diff != "" {
		t.Errorf("without a filter (-want +got):\n%s", diff)
	}
	if err := attach(g.Name()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, job(t, g, attempts)); diff != "" {
		t.Errorf("with it (-want +got):\n%s", diff)
	}
	// What another process of the machine asks for is its own matter.
	stop, p, err := listen("tcp4", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if c, err := net.DialTimeout("tcp", fmt.Sprint("127.0.0.1:", p), time.Minute); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}
