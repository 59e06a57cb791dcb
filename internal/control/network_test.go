package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestNetworkChoosesTheNode: what a job needs of the network is found on the
// nodes that have it, and refused with the reason where none has.
func TestNetworkChoosesTheNode(t *testing.T) {
	ports := []job.PortMapping{{ContainerPort: 80}}
	for name, tc := range map[string]struct {
		ports []job.PortMapping
		g     job.Gbatch
		want  string // node, or part of the refusal
	}{
		"ports":      {ports, job.Gbatch{}, "closed"},
		"bridge":     {nil, job.Gbatch{Network: job.NetworkBridge}, "closed"},
		"host":       {nil, job.Gbatch{Network: job.NetworkHost}, "open"},
		"gang":       {nil, job.Gbatch{Nodes: 2}, "there are 1"},
		"no_matter1": {nil, job.Gbatch{Exclusive: true}, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, inv := range []node.Inventory{{Hostname: "closed", Bridge: true, NoHost: true}, {Hostname: "open"}} {
				inv.Cluster, inv.CPUs, inv.MemBytes = 1, 2, 64<<30
				w.apply(NodeSync{Name: inv.Hostname, Instance: inv.Hostname, Hash: "h", Inventory: &inv})
			}
			spec := &job.Spec{Name: "t", Gbatch: &tc.g}
			spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
			spec.Request.Docker.PortMappings = tc.ports
			answer := w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
			if r, ok := answer.(*state.Refusal); ok {
				if !strings.Contains(fmt.Sprint(r.Message, r.Hint), tc.want) {
					t.Errorf("refused: %+v; want %q", r, tc.want)
				}
				return
			}
			w.schedule()
			if at := w.c.jobs.get(1).Attempt; at == nil || at.Ranks[0].Alloc.Node != tc.want {
				t.Errorf("got %+v, want node %s", at, tc.want)
			}
		})
	}
}

// TestPortsAreKept: the node's word on ports is recorded with the rank, and a
// later word without any does not take it back.
func TestPortsAreKept(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 2, gpus{}, "i1")
	spec := &job.Spec{Name: "t"}
	spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
	w.apply(Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	w.schedule()
	ports := []job.PortMapping{{ContainerPort: 80, HostPort: 20000}}
	for _, st := range []node.RankStatus{{Phase: node.PhaseStarting}, {Phase: node.PhaseRunning, Ports: ports}, {Phase: node.PhaseEnded, Exit: &node.Exit{}}} {
		st.ID = w.c.jobs.get(1).RankID(0)
		n := w.c.nodes.get("n1")
		w.apply(NodeSync{Name: "n1", Instance: "i1", Hash: n.Hash, Ranks: []node.RankStatus{st}})
	}
	w.restart()
	j := w.c.jobs.get(1)
	if diff := cmp.Diff(ports, j.Attempt.Ranks[0].Ports); diff != "" || j.State != job.Finished {
		t.Errorf("%s (-want +got):\n%s", j.State, diff)
	}
}
