package oci_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/netns"
	"gbatch/oci/userns"
)

// ownHostEnv marks the test binary that runs in a network namespace, which is
// the host's to it.
const ownHostEnv = "GBATCH_TEST_OWN_HOST"

// inOwnHost runs the rest of a test where it cannot touch the machine's own
// network, and returns true there.
func inOwnHost(t *testing.T) bool {
	t.Helper()
	needContainers(t)
	if os.Getenv(ownHostEnv) != "" {
		if err := exec.Command("ip", "link", "set", "lo", "up").Run(); err != nil {
			t.Skip("NOT TESTED: needs the program ip: ", err)
		}
		return true
	}
	if err := netns.Probe(); err != nil {
		t.Skip("NOT TESTED: ", err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownHostEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// networked is a container with a network of its own.
type networked struct {
	*box
	net  *netns.Network
	at   *netns.Attached
	port netip.AddrPort // on the host, of the container's 8080
	hand handed.Handover
}

// newNetworked describes one whose port 8080 is published.
func newNetworked(t *testing.T, script string) *networked {
	t.Helper()
	return attach(t, &networked{box: newBox(t, script)}, userns.Namespaces{})
}

// attach gives a container its network, in ns if there is one.
func attach(t *testing.T, n *networked, ns userns.Namespaces) *networked {
	t.Helper()
	var err error
	if n.net, err = netns.Open(netns.Config{Node: "oci-test"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.net.Close)
	if n.at, err = n.net.Attach(n.id, ns.Net, nil); err != nil {
		t.Fatal(err)
	}
	l, err := netns.Listen(netip.Addr{}, 0, netns.DefaultPorts)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n.port = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(l.Addr().(*net.TCPAddr).Port))
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	n.hand = handed.Handover{User: ns.User, Namespace: n.at.Namespace, Listeners: []*os.File{f}}
	n.cfg.Network = &oci.ShimNetwork{Addr: n.at.Addr, Ports: []uint16{8080}}
	return n
}

func (n *networked) start() {
	n.Helper()
	n.prepare()
	shim, err := shims.Start(n.dir, n.hand)
	if err != nil {
		n.Fatal(err)
	}
	n.hand.Namespace.Close()
	n.hand.Listeners[0].Close()
	n.Cleanup(func() { shim.Kill(); <-shim.Done() })
	n.shim = shim
}

// ask reads what the published port has to say.
func (n *networked) ask() (string, error) {
	c, err := net.DialTimeout("tcp", n.port.String(), time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	return string(b), err
}

// says waits until the whole log is want: an answer may be here before the shim
// has written what the program printed before it.
func (n *networked) says(want string) {
	n.Helper()
	defer func() {
		if n.Failed() {
			n.Logf("the log is %q", n.log())
		}
	}()
	poll(n, fmt.Sprintf("log that is %q", want), func() bool { return n.log() == want })
}

// pollGone waits until the kernel has taken the host's interface away.
func (n *networked) pollGone() {
	n.Helper()
	poll(n, "end of the interface", func() bool {
		links, err := net.Interfaces()
		return err == nil && len(links) == 1
	})
}

const serveForever = `ip addr show eth0 | grep -o 'inet [0-9./]*'; ls /proc/self/fd | wc -l; while :; do echo served | nc -l -p 8080; done`

func TestPublishedPort(t *testing.T) {
	if !inOwnHost(t) {
		return
	}
	n := newNetworked(t, serveForever)
	n.start()
	poll(t, "answer", func() bool { got, err := n.ask(); return err == nil && got == "served\n" })
	n.says("inet " + n.at.Addr.String() + "/32\n4\n") // its address, and the usual open files
	if err := n.shim.Kill(); err != nil {
		t.Fatal(err)
	}
	<-n.shim.Done()
	if _, err := n.ask(); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("after the end: %v, want connection refused", err)
	}
	n.pollGone()
}

// Who asks before the program runs waits for it.
func TestPublishedPortWaits(t *testing.T) {
	if !inOwnHost(t) {
		return
	}
	n := newNetworked(t, serveForever)
	c, err := net.Dial("tcp", n.port.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n.start()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// The server may not listen yet when the program has begun: then it is a
	// reset, as from any host. What may not happen is a refusal or a silence.
	if b, err := io.ReadAll(c); string(b) != "served\n" && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("got %q, %v", b, err)
	}
}

// Ports work on while nobody but the shim knows of them, and when it is killed
// nothing of the network is left.
func TestPublishedPortOutlivesTheDaemon(t *testing.T) {
	if !inOwnHost(t) {
		return
	}
	n := newNetworked(t, serveForever)
	n.start()
	n.net.Close()
	adopt(t, n.box, oci.StateAlive)
	poll(t, "answer", func() bool { got, err := n.ask(); return err == nil && got == "served\n" })
	if err := unix.Kill(shimPID(t, n.box), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-n.shim.Done()
	adopt(t, n.box, oci.StateLost)
	if _, err := n.ask(); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("after the kill: %v, want connection refused", err)
	}
	n.pollGone()
}

// A user's container has its network to itself: its root configures it, and
// low ports are anybody's there.
func TestMappedNetwork(t *testing.T) {
	if !inOwnHost(t) {
		return
	}
	script := `cat /proc/sys/net/ipv4/ip_unprivileged_port_start; su bob -c 'echo low | nc -l -p 80 & until nc 127.0.0.1 80 </dev/null 2>/dev/null; do :; done'; ip link set lo down 2>&1; ` + serveForever
	b := newMapped(t, script)
	ns, err := userns.New(b.req.IDs, true)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.User.Close()
	n := attach(t, &networked{box: b}, ns)
	n.start()
	poll(t, "answer", func() bool { got, err := n.ask(); return err == nil && got == "served\n" })
	n.says("0\nlow\nip: SIOCSIFFLAGS: Operation not permitted\ninet " + n.at.Addr.String() + "/32\n4\n")
	if err := n.shim.Kill(); err != nil {
		t.Fatal(err)
	}
	<-n.shim.Done()
	n.pollGone()
}

func TestPrepareRefusesTwoNetworks(t *testing.T) {
	spec, err := draft.Build(draft.Request{Command: []string{"true"}, CgroupPath: "/x", Network: draft.Network{Host: true}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := oci.ShimConfig{ID: "x", Layers: []string{"/layer"}, Network: &oci.ShimNetwork{}}
	if err := oci.Prepare(t.TempDir()+"/c", spec, cfg); err == nil || !strings.Contains(err.Error(), "names another one") {
		t.Errorf("got %v", err)
	}
}
