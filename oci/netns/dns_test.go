package netns

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestResolver(t *testing.T) {
	for name, tc := range map[string]struct {
		conf  string
		given string
		want  string
		relay string
	}{
		"plain":          {"search a.example b.example\nnameserver 192.0.2.1 # one\n; no\nnameserver 192.0.2.2\noptions ndots:2\n", "", "nameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch a.example b.example\noptions ndots:2\n", ""},
		"stub":           {"nameserver 127.0.0.53\noptions edns0 trust-ad\n", "", "nameserver 127.0.0.53\noptions edns0 trust-ad\n", "127.0.0.53:53"},
		"stub_and_other": {"nameserver 127.0.0.1\nnameserver 192.0.2.1\n", "", "nameserver 192.0.2.1\n", ""},
		"ipv6_only":      {"nameserver 2001:db8::1\n", "", "nameserver 127.0.0.53\n", "[2001:db8::1]:53"},
		"mapped":         {"nameserver ::ffff:192.0.2.1\n", "", "nameserver 192.0.2.1\n", ""},
		"none":           {"", "", "nameserver 127.0.0.53\n", "127.0.0.1:53"},
		"given":          {"search a.example\nnameserver 192.0.2.1\n", "192.0.2.9", "nameserver 192.0.2.9\nsearch a.example\n", ""},
		"nonsense":       {"nameserver\nnameserver nobody\nnameserver 192.0.2.1\n", "", "nameserver 192.0.2.1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var given []netip.Addr
			if tc.given != "" {
				given = []netip.Addr{netip.MustParseAddr(tc.given)}
			}
			r := newResolver([]byte(tc.conf), given)
			var relay []string
			for _, a := range r.relay {
				relay = append(relay, a.String())
			}
			if diff := cmp.Diff(tc.want, string(r.conf())); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.relay, strings.Join(relay, " ")); diff != "" {
				t.Errorf("relay (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	node := "127.0.0.1 localhost node7\n127.0.1.1 node7\n::1 localhost\nff02::1 ip6-allnodes\n192.0.2.7 node7 node7.example # me\n192.0.2.8\tnode8 JOB-12 gpu02\n192.0.2.9\n"
	got := Hosts([]byte(node), Name{netip.MustParseAddr("10.213.0.5"), []string{"job-12"}}, Name{netip.MustParseAddr("10.214.0.2"), []string{"GPU02"}})
	want := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n10.213.0.5\tjob-12\n10.214.0.2\tGPU02\n192.0.2.7\tnode7 node7.example\n192.0.2.8\tnode8\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A name server that only the node can reach answers a network, by both
// protocols, and the first that answers counts.
func TestRelay(t *testing.T) {
	n := openNetwork(t, Config{})
	a := attach(t, n, "job")
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer udp.Close()
	server := netip.MustParseAddrPort(udp.LocalAddr().String())
	go func() { // ends with the socket
		buf := make([]byte, 512)
		for {
			k, from, err := udp.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteToUDPAddrPort(append([]byte("answer to "), buf[:k]...), from)
		}
	}()
	tcp := listenIn(t, nil, server.String())
	serveName(tcp, "long answer")

	dead := netip.MustParseAddrPort("127.0.0.1:1") // refuses at once
	r, err := NewRelay(a.Namespace, []netip.AddrPort{dead, server})
	must(t, err)
	done := make(chan struct{})
	go func() { r.Run(); close(done) }()
	defer func() { must(t, r.Close()); <-done }()

	var c *net.UDPConn
	must(t, inside(a.Namespace, func() (err error) {
		c, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(relayAddr))
		return err
	}))
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = c.Write([]byte("question"))
	must(t, err)
	buf := make([]byte, 512)
	k, err := c.Read(buf)
	must(t, err)
	if got := string(buf[:k]); got != "answer to question" {
		t.Errorf("by UDP: %q", got)
	}
	if got, err := ask(a.Namespace, relayAddr); err != nil || !strings.HasSuffix(got, "long answer") {
		t.Errorf("by TCP: %q, %v", got, err)
	}
}

// A name server on the node's own address can be asked, and nothing else there.
func TestResolverOnTheNode(t *testing.T) {
	outside(t)
	n := openNetwork(t, Config{DNS: []netip.Addr{hostAddr}})
	a := attach(t, n, "job")
	l := listenIn(t, nil, netip.AddrPortFrom(hostAddr, 53).String())
	serveName(l, "names")
	if got, err := ask(a.Namespace, netip.AddrPortFrom(hostAddr, 53)); err != nil || !strings.HasSuffix(got, " names") {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ask(a.Namespace, netip.AddrPortFrom(n.gateway(), 53)); err == nil {
		t.Errorf("another address of the node answers: %q", got)
	}
}
