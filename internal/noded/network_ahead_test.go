package noded

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// linksMarked are the interfaces whose marks begin so.
func linksMarked(t testing.TB, begin string) map[string]string {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, l := range links {
		if mark := l.Attrs().Alias; strings.HasPrefix(mark, begin) {
			out[l.Attrs().Name] = mark
		}
	}
	return out
}

// TestNetworkAhead: where ranks of one user follow each other, the next one finds a
// network made; nobody else gets it, it is that rank's over a restart of the daemon,
// whether or not its mark was changed, and those that no rank took are removed.
func TestNetworkAhead(t *testing.T) {
	s := newSite(t, nil).start()
	bob := func(o *api.RunOrder) { o.User, o.IDs = "bob", 0x20010000 }
	s.run(rankID(1), order("true"))
	s.run(rankID(2), order("true"))
	var made string
	until(t, "a network that was made ahead", func() bool {
		for made = range linksMarked(t, "ahead-") {
		}
		return made != ""
	})

	s.want(rankID(3), order(serve(80, "bob"), bob, withPorts(job.PortMapping{ContainerPort: 80})))
	s.phase(rankID(3), node.PhaseRunning)
	if linksMarked(t, "ahead-")[made] == "" {
		t.Fatalf("%s was given to another user", made)
	}

	s.want(rankID(4), order(serve(80, "alice"), withPorts(job.PortMapping{ContainerPort: 80})))
	port := s.phase(rankID(4), node.PhaseRunning).Ports[0].HostPort
	s.answers(port, "alice")
	until(t, "the mark of the rank", func() bool { return linksMarked(t, rankID(4).String())[made] != "" })
	until(t, "another network that was made ahead", func() bool { return len(linksMarked(t, "ahead-")) > 0 })

	s.halt()
	if left := linksMarked(t, "ahead-"); len(left) > 0 {
		t.Errorf("left by the daemon: %v", left)
	}
	link, err := netlink.LinkByName(made)
	if err == nil {
		err = netlink.LinkSetAlias(link, "ahead-1") // as if the daemon had been killed before it changed it
	}
	if err != nil {
		t.Fatal(err)
	}
	s.unlearn(rankID(3))
	s.unlearn(rankID(4))
	s.start()
	s.phase(rankID(4), node.PhaseRunning)
	s.answers(port, "alice")
	kill(s, rankID(4))
	kill(s, rankID(3))
	if left := waitNoLinks(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	s.holdsNothing()
}

// TestNetworkAheadGivesWay: where all addresses are taken, ranks come before networks
// that wait for none.
func TestNetworkAheadGivesWay(t *testing.T) {
	s := newSite(t, nil)
	s.cfg.Network.Subnet = "10.214.0.0/29" // five
	s.start()
	s.run(rankID(1), order("true"))
	s.run(rankID(2), order("true"))
	until(t, "a network that was made ahead", func() bool { return len(linksMarked(t, "ahead-")) > 0 })
	bob := func(o *api.RunOrder) { o.User, o.IDs = "bob", 0x20010000 }
	for n := 3; n < 8; n++ {
		s.want(rankID(n), order("sleep 1000", bob))
		s.phase(rankID(n), node.PhaseRunning)
	}
	for n := 3; n < 8; n++ {
		kill(s, rankID(n))
	}
	s.empty()
}
