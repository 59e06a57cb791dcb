package netns

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// forward publishes a port of a namespace for the test's duration.
func forward(t testing.TB, a *Attached, port uint16) netip.AddrPort {
	t.Helper()
	l, err := Listen(netip.Addr{}, 0, DefaultPorts)
	must(t, err)
	f := &Forward{Listener: l, Namespace: a.Namespace, Addr: a.Addr, Port: port}
	done := make(chan struct{})
	go func() { f.Run(); close(done) }() // waited for below
	t.Cleanup(func() { l.Close(); <-done })
	return netip.AddrPortFrom(loopback4, portOf(l))
}

func TestForward(t *testing.T) {
	out := outside(t)
	n := openNetwork(t, Config{})
	a, b := attach(t, n, "job-a"), attach(t, n, "job-b")
	anywhere := listenIn(t, a.Namespace, "0.0.0.0:0")
	serveName(anywhere, "anywhere")
	loop4 := listenIn(t, a.Namespace, "127.0.0.1:0")
	serveName(loop4, "loop4")
	loop6 := listenIn(t, a.Namespace, "[::1]:0")
	serveName(loop6, "loop6")

	at := func(host netip.Addr, p netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(host, p.Port()) }
	main := forward(t, a, portOf(anywhere))
	must(t, n.Publish("job-a", []uint16{main.Port()}))
	for name, tc := range map[string]struct {
		from *os.File
		to   netip.AddrPort
		want string
	}{
		// The server does not take a stranger for a local client.
		"from_host":         {nil, main, a.Addr.String() + " anywhere"},
		"from_host_by_ipv6": {nil, at(netip.IPv6Loopback(), main), a.Addr.String() + " anywhere"},
		"from_outside":      {out, at(hostAddr, main), a.Addr.String() + " anywhere"},
		"from_other_job":    {b.Namespace, at(hostAddr, main), a.Addr.String() + " anywhere"},
		"from_itself":       {a.Namespace, at(n.gateway(), main), a.Addr.String() + " anywhere"},
		"loopback_server":   {nil, forward(t, a, portOf(loop4)), "127.0.0.1 loop4"},
		"ipv6_server":       {nil, forward(t, a, portOf(loop6)), "::1 loop6"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(tc.from, tc.to)
			must(t, err)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("no_server_yet", func(t *testing.T) {
		if _, err := ask(nil, forward(t, a, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("got %v, want a reset", err)
		}
	})
	t.Run("not_published_any_more", func(t *testing.T) {
		must(t, n.Detach("job-a"))
		if _, err := ask(b.Namespace, at(hostAddr, main)); err == nil {
			t.Error("reached")
		}
	})
}

// Each end may close its half and still read: the answer comes after the end
// of the question.
func TestForwardHalfClose(t *testing.T) {
	n := openNetwork(t, Config{})
	a := attach(t, n, "job")
	l := listenIn(t, a.Namespace, "0.0.0.0:0")
	go func() { // ends with the listener
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		_, _ = c.Write(all)
	}()
	question := make([]byte, 4<<20)
	_, _ = rand.Read(question)
	c, err := net.Dial("tcp", forward(t, a, portOf(l)).String())
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = c.Write(question)
	must(t, err)
	must(t, c.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(c)
	must(t, err)
	if !bytes.Equal(question, answer) {
		t.Errorf("%d bytes came back changed; %d were sent", len(answer), len(question))
	}
}

// A server that dies in the middle looks so from outside.
func TestForwardReset(t *testing.T) {
	n := openNetwork(t, Config{})
	a := attach(t, n, "job")
	l := listenIn(t, a.Namespace, "0.0.0.0:0")
	go func() { // ends with the listener
		c, err := l.AcceptTCP()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(c, make([]byte, 1))
		reset(c)
	}()
	c, err := net.Dial("tcp", forward(t, a, portOf(l)).String())
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = c.Write([]byte("x"))
	must(t, err)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

// More connections than the bound wait and are served when others end.
func TestForwardBound(t *testing.T) {
	n := openNetwork(t, Config{})
	a := attach(t, n, "job")
	server := listenIn(t, a.Namespace, "0.0.0.0:0")
	var mu sync.Mutex
	open, most := 0, 0
	go func() { // ends with the listener
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				mu.Lock()
				open++
				most = max(most, open)
				mu.Unlock()
				_, _ = io.Copy(c, c)
				mu.Lock()
				open--
				mu.Unlock()
				c.Close()
			}()
		}
	}()
	l, err := Listen(loopback4, 0, DefaultPorts)
	must(t, err)
	f := &Forward{Listener: l, Namespace: a.Namespace, Addr: a.Addr, Port: portOf(server), MaxConns: 4}
	done := make(chan struct{})
	go func() { f.Run(); close(done) }()
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = c.Write([]byte("x"))
			_ = c.(*net.TCPConn).CloseWrite()
			if got, err := io.ReadAll(c); err != nil || string(got) != "x" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	l.Close()
	<-done
	mu.Lock()
	defer mu.Unlock()
	if most > 4 {
		t.Errorf("%d connections at once, want at most 4", most)
	}
}

func TestListen(t *testing.T) {
	needNetwork(t)
	busy, err := Listen(netip.Addr{}, 0, DefaultPorts)
	must(t, err)
	defer busy.Close()
	port := portOf(busy)
	if port < DefaultPorts.First || port > DefaultPorts.Last {
		t.Errorf("port %d is not of the range", port)
	}
	for name, tc := range map[string]struct {
		ip   netip.Addr
		port uint16
		r    PortRange
		want error
	}{
		"busy":            {netip.Addr{}, port, DefaultPorts, &PortInUseError{Port: port}},
		"busy_by_address": {loopback4, port, DefaultPorts, &PortInUseError{Addr: loopback4, Port: port}},
		"range_full":      {netip.Addr{}, 0, PortRange{port, port}, &PortInUseError{Range: PortRange{port, port}}},
		"no_such_address": {netip.MustParseAddr("203.0.113.7"), 0, DefaultPorts, &NoAddressError{Addr: netip.MustParseAddr("203.0.113.7")}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Listen(tc.ip, tc.port, tc.r)
			if err == nil {
				l.Close()
			}
			if diff := cmp.Diff(tc.want, err, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each port of a small range is given once, whoever asks at the same time.
func TestListenTogether(t *testing.T) {
	needNetwork(t)
	r := PortRange{21000, 21019}
	var mu sync.Mutex
	got := map[uint16]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			l, err := Listen(netip.Addr{}, 0, r)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { l.Close() })
			mu.Lock()
			got[portOf(l)]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(got) != 20 {
		t.Errorf("%d ports, want 20", len(got))
	}
}

func BenchmarkForwardConnection(b *testing.B) {
	n := openNetwork(b, Config{})
	a := attach(b, n, "job")
	l := listenIn(b, a.Namespace, "0.0.0.0:0")
	serveName(l, "x")
	to := forward(b, a, portOf(l))
	for b.Loop() {
		if _, err := ask(nil, to); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForwardBulk(b *testing.B) {
	n := openNetwork(b, Config{})
	a := attach(b, n, "job")
	l := listenIn(b, a.Namespace, "0.0.0.0:0")
	go func() { // ends with the listener
		c, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	c, err := net.Dial("tcp", forward(b, a, portOf(l)).String())
	must(b, err)
	defer c.Close()
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		_, err := c.Write(buf)
		must(b, err)
	}
}
