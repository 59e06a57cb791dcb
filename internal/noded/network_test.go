package noded

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/oci/netns"
)

// waitNoLinks waits until nothing is left of jobs' networks, and returns what stays.
func waitNoLinks() []string {
	var left []string
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left = nil
		links, err := net.Interfaces()
		for _, l := range links {
			if l.Name != "lo" {
				left = append(left, "interface "+l.Name)
			}
		}
		if err == nil && len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// withPorts maps ports of an order.
func withPorts(list ...job.PortMapping) func(*api.RunOrder) {
	return func(o *api.RunOrder) { o.Spec.Request.Docker.PortMappings = list }
}

// serve answers on a port of the container until it is stopped.
func serve(port int, text string) string {
	return fmt.Sprintf("while :; do echo %s | nc -l -p %d; done", text, port)
}

func ask(port int) (string, error) {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), 2*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	return strings.TrimSpace(string(b)), err
}

func (s *site) answers(port int, want string) {
	s.t.Helper()
	until(s.t, fmt.Sprintf("the answer %q at port %d", want, port), func() bool {
		got, err := ask(port)
		return err == nil && got == want
	})
}

func kill(s *site, id job.RankID) {
	s.stop(id, api.Stop{Signal: "KILL", Reason: job.ByUser})
	s.exit(id)
	s.drop(id)
}

// TestPortMapping: ports that the node chose are told and lead to the
// container, also after the daemon's restart, and are free after the end.
func TestPortMapping(t *testing.T) {
	s := newSite(t, nil).start()
	s.want(rankID(1), order("echo $GBATCH_PORT_80; hostname; grep job-1 /etc/hosts; "+serve(80, "one"), withPorts(job.PortMapping{ContainerPort: 80}, job.PortMapping{ContainerPort: 81, HostPort: 8081, HostIP: "127.0.0.1"})))
	st := s.phase(rankID(1), node.PhaseRunning)
	if len(st.Ports) != 2 || st.Ports[0].HostPort < 20000 || st.Ports[1] != (job.PortMapping{ContainerPort: 81, HostPort: 8081, HostIP: "127.0.0.1"}) {
		t.Fatalf("ports: %v", st.Ports)
	}
	port := st.Ports[0].HostPort
	s.answers(port, "one")
	if !s.inv.Bridge {
		t.Error("the node does not say that jobs can have a network")
	}

	s.halt()
	s.unlearn(rankID(1))
	s.start()
	if diff := cmp.Diff(st.Ports, s.phase(rankID(1), node.PhaseRunning).Ports); diff != "" {
		t.Errorf("ports after the restart (-want +got):\n%s", diff)
	}
	s.answers(port, "one")

	// Another job reaches it as anybody does, by the node's address.
	gw := netip.MustParsePrefix(s.cfg.Network.Subnet).Addr().Next()
	_, out := s.run(rankID(2), order(fmt.Sprintf("nc -w 5 %s %d </dev/null; nc -w 5 %s 8081 </dev/null || echo refused", gw, port, gw)))
	if out != "one\nrefused\n" && !strings.Contains(out, "one\n") {
		t.Errorf("another job sees %q", out)
	}
	kill(s, rankID(1))
	if _, err := ask(port); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("after the end: %v", err)
	}
	if log := s.output(rankID(1)); !strings.HasPrefix(log, fmt.Sprintf("%d\njob-1\n10.213.", port)) {
		t.Errorf("the job says %q", log)
	}
	s.holdsNothing()
}

// TestPortInUse: who has the port is named, whatever it is.
func TestPortInUse(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Network.Ports, c.Network.AllowHost = "21000-21000", true }).start()
	port := func(n int) func(*api.RunOrder) { return withPorts(job.PortMapping{ContainerPort: 80, HostPort: n}) }
	l, err := netns.Listen(netip.Addr{}, 7777, netns.DefaultPorts)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.want(rankID(1), order("sleep 1000", port(0)))
	s.phase(rankID(1), node.PhaseRunning)
	s.want(rankID(2), order(serve(9999, "x"), func(o *api.RunOrder) { o.Spec.Gbatch = &job.Gbatch{Network: job.NetworkHost} }))
	s.phase(rankID(2), node.PhaseRunning)
	s.answers(9999, "x")
	until(t, "the port of the job in the node's network", func() bool {
		l, err := netns.Listen(netip.Addr{}, 9999, netns.DefaultPorts)
		if err == nil {
			l.Close()
		}
		return err != nil
	})
	name := s.cfg.Name
	for what, tc := range map[string]struct {
		change func(*api.RunOrder)
		want   node.Exit
	}{
		"by_a_job":      {port(21000), node.Exit{Reason: job.PortInUse, Message: "port 21000 of node " + name + " is in use by job 1"}},
		"by_a_host_job": {port(9999), node.Exit{Reason: job.PortInUse, Message: "port 9999 of node " + name + " is in use by job 2"}},
		"by_a_process":  {port(7777), node.Exit{Reason: job.PortInUse, Message: fmt.Sprintf("port 7777 of node %s is in use by exe (process %d)", name, os.Getpid())}},
		"all":           {port(0), node.Exit{Reason: job.PortInUse, Message: "all ports from 21000 to 21000 are in use on node " + name}},
		"no_address": {withPorts(job.PortMapping{ContainerPort: 80, HostIP: "203.0.113.9"}),
			node.Exit{Reason: job.BadSpec, Message: "hostIp 203.0.113.9 is not an address of node " + name}},
	} {
		t.Run(what, func(t *testing.T) {
			tc.want.Code = 125
			e, _ := s.runNoLog(rankID(10+len(what)), order("true", tc.change))
			if diff := cmp.Diff(&tc.want, e, ignoreFigures); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	kill(s, rankID(1))
	kill(s, rankID(2))
	// The port is free at once for the next one.
	s.want(rankID(3), order("sleep 1000", port(21000)))
	s.phase(rankID(3), node.PhaseRunning)
	kill(s, rankID(3))
	s.empty()
}

// TestJobsAreApart: a job reaches neither another one nor the node.
func TestJobsAreApart(t *testing.T) {
	s := newSite(t, nil).start()
	s.want(rankID(1), order(serve(80, "one")))
	s.phase(rankID(1), node.PhaseRunning)
	l, err := net.Listen("tcp", ":7001")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	subnet := netns.DefaultSubnet.Addr()
	first := subnet.Next().Next() // of job 1
	_, out := s.run(rankID(2), order(fmt.Sprintf(
		"nc -w 5 %s 80 </dev/null || echo apart; nc -w 5 %s 7001 </dev/null || echo apart; nc -w 5 127.0.0.1 7001 </dev/null || echo apart; cat /proc/net/tcp | wc -l; ip link | grep -c mtu", first, subnet.Next())))
	if got := strings.Count(out, "apart\n"); got != 3 || !strings.HasSuffix(out, "\n1\n2\n") {
		t.Errorf("output %q", out)
	}
	kill(s, rankID(1))
	s.empty()
}

// TestNetworkRules: what a node does not offer is a job's error with the way out.
func TestNetworkRules(t *testing.T) {
	ports := withPorts(job.PortMapping{ContainerPort: 80})
	t.Run("host_only", func(t *testing.T) {
		s := newSite(t, func(c *config.Config) { c.Network.Mode, c.Network.AllowHost = config.NetworkHost, true }).start()
		e, _ := s.runNoLog(rankID(1), order("true", ports))
		if want := "jobs cannot have a network of their own on " + s.cfg.Name; e.Reason != job.BadSpec || !strings.Contains(e.Message, want) {
			t.Errorf("%+v; want %q", e, want)
		}
		s.empty()
	})
	t.Run("no_host", func(t *testing.T) {
		s := newSite(t, nil).start()
		e, _ := s.runNoLog(rankID(1), order("true", func(o *api.RunOrder) { o.Spec.Gbatch = &job.Gbatch{Network: job.NetworkHost} }))
		if want := "does not let jobs use its own network"; e.Reason != job.BadSpec || !strings.Contains(e.Message, want) {
			t.Errorf("%+v; want %q", e, want)
		}
		if e, out := s.run(rankID(2), order("cat /etc/resolv.conf")); e.Code != 0 || !strings.Contains(out, "nameserver") {
			t.Errorf("%+v, %q", e, out)
		}
		if inv := s.inv; !inv.NoHost || !inv.Bridge {
			t.Errorf("inventory: %+v", inv)
		}
		s.empty()
	})
}

// TestHostNetworkIsFiltered: a job in the node's network does not reach what
// listens on the node's loopback addresses, nor does a command beside it; its
// own services it does.
func TestHostNetworkIsFiltered(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Network.AllowHost = true }).start()
	if s.a.network.NoHost() {
		t.Skip("NOT TESTED: jobs cannot be filtered on this machine")
	}
	l, err := net.Listen("tcp", "127.0.0.1:7002")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const look = "nc -w 5 127.0.0.1 7002 </dev/null 2>/dev/null || echo kept away"
	host := func(o *api.RunOrder) { o.Spec.Gbatch = &job.Gbatch{Network: job.NetworkHost} }
	s.want(rankID(1), order(look+"; "+serve(7003, "mine"), host))
	s.phase(rankID(1), node.PhaseRunning)
	s.answers(7003, "mine") // others of the machine do
	e := s.exec(rankID(1), sh(look+"; until nc -w 5 127.0.0.1 7003 </dev/null 2>/dev/null; do :; done"))
	if code := e.exit(); code != 0 || string(e.out) != "kept away\nmine\n" {
		t.Errorf("a command beside it: %d, %q", code, e.out)
	}
	for port, want := range map[uint16]string{7002: "what listens there is not the job's", 7003: "mine\n"} { // who connects is not the daemon
		p := s.enter(api.StreamForward, rankID(1))
		p.send(api.JSONFrame(api.FrameStart, api.ForwardStart{Port: port}))
		f := p.next()
		said := string(f.Data)
		if f.Type == api.FrameError {
			said = f.Failure().Message
		}
		if !strings.Contains(said, want) && !strings.Contains(said, "built without the program") {
			t.Errorf("a forwarded port %d: %c %q, want %q", port, f.Type, said, want)
		}
	}
	kill(s, rankID(1))
	if out := s.output(rankID(1)); out != "kept away\n" {
		t.Errorf("output %q", out)
	}
	s.empty()
}

// TestNetworkChange: a node that gave jobs networks and now does not leaves
// nothing of it, and lets those that run go on.
func TestNetworkChange(t *testing.T) {
	s := newSite(t, nil).start()
	s.want(rankID(1), order(serve(80, "one"), withPorts(job.PortMapping{ContainerPort: 80})))
	port := s.phase(rankID(1), node.PhaseRunning).Ports[0].HostPort
	s.halt()
	s.cfg.Network.Mode, s.cfg.Network.AllowHost = config.NetworkHost, true
	s.start()
	s.answers(port, "one")
	kill(s, rankID(1))
	s.empty()
	s.halt()
	s.start()
	if got := waitNoLinks(); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
	s.empty()
}
