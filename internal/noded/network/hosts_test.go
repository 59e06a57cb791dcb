package network

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/oci/netns"
)

// TestNamesOfRanks: a node's name leads to the first rank that is there; a rank that is there
// too has it for itself. The names that a job gives lead to their rank everywhere.
func TestNamesOfRanks(t *testing.T) {
	o := &api.RunOrder{Spec: job.Spec{Gbatch: &job.Gbatch{Nodes: 3, OfRanks: []job.Own{{Hosts: []string{"a"}}, {}, {}}}}, Peers: []api.Peer{
		{Node: "n1", Inside: "10.214.0.1/16"}, {Node: "n1", Inside: "10.214.0.2/16"}, {Node: "n2", Inside: "10.214.0.3/16"}}}
	for own, want := range []string{
		"10.214.0.1\ta n1\n10.214.0.3\tn2\n",
		"10.214.0.1\ta\n10.214.0.2\tn1\n10.214.0.3\tn2\n",
		"10.214.0.1\ta n1\n10.214.0.3\tn2\n",
	} {
		if got := string(netns.Hosts(nil, names(own, o)...)); !strings.HasSuffix(got, want) {
			t.Errorf("rank %d has %q, want it to end in %q", own, got, want)
		}
	}
}

func TestNodeHosts(t *testing.T) {
	one := job.Spec{Gbatch: &job.Gbatch{OfRanks: []job.Own{{Hosts: []string{"a.mesh", "a"}}}}}
	two := job.Spec{Gbatch: &job.Gbatch{Nodes: 2, OfRanks: []job.Own{{Hosts: []string{"a.mesh", "a"}}, {Hosts: []string{"b"}}}}}
	peers := []api.Peer{{Node: "n1", Address: "192.0.2.1"}, {Node: "n2", Address: "192.0.2.2"}}
	for name, tc := range map[string]struct {
		order api.RunOrder
		hosts string
		want  string
	}{
		"alone":         {api.RunOrder{Spec: one}, "127.0.0.1 localhost n1\n", "192.0.2.9\ta.mesh a\n127.0.0.1 localhost n1\n"},
		"several":       {api.RunOrder{Spec: two, Peers: peers}, "127.0.0.1 localhost\n# n1\n", "192.0.2.1\ta.mesh a\n192.0.2.2\tb\n127.0.0.1 localhost\n# n1\n127.0.1.1\tn1\n"},
		"without names": {api.RunOrder{Peers: peers}, "", "127.0.0.1\tlocalhost\n127.0.1.1\tn1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(NodeHosts([]byte(tc.hosts), "n1", &tc.order, "192.0.2.9")); got != tc.want {
				t.Errorf("NodeHosts = %q, want %q", got, tc.want)
			}
		})
	}
}
