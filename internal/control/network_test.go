package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/control/ask"
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
		"ports":     {ports, job.Gbatch{}, "closed"},
		"bridge":    {nil, job.Gbatch{Network: job.NetworkBridge}, "closed"},
		"host":      {nil, job.Gbatch{Network: job.NetworkHost}, "open"},
		"default":   {nil, job.Gbatch{}, "closed"},
		"gang":      {nil, job.Gbatch{Nodes: 2}, `"NETWORK_GANG"`},
		"gang_host": {nil, job.Gbatch{Nodes: 2, Network: job.NetworkHost}, "there are 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Projects["vision"] = ask.Project{HostNetwork: true}
			w.restart()
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

// TestHostNetwork: only jobs of projects that may use the nodes' network, on
// nodes that allow it.
func TestHostNetwork(t *testing.T) {
	w := newWorld(t)
	w.cfg.Projects["fabric"] = ask.Project{HostNetwork: true}
	w.restart()
	submit := func(project string, nodes int) any {
		spec := &job.Spec{Name: "t", Gbatch: &job.Gbatch{Network: job.NetworkHost, Nodes: nodes}}
		spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
		return w.apply(Submit{UUID: [16]byte{byte(nodes), project[0]}, User: "ann", Project: project, Spec: spec, Document: []byte("{}")})
	}
	w.node("n1", 2, gpus{}, "i1")
	for project, want := range map[string]string{"vision": "jobs of project vision may not use the nodes' network", "fabric": `"NETWORK_HOST"`} {
		r, ok := submit(project, 1).(*state.Refusal)
		if !ok || !strings.Contains(r.Message, want) {
			t.Errorf("%s: got %+v, want a refusal with %q", project, r, want)
		}
		if r != nil && project == "vision" && (r.Code != state.Denied || r.Path != "gbatch.network" || !strings.Contains(r.Hint, "hostNetwork")) {
			t.Errorf("the refusal is %+v", r)
		}
	}
	if r, ok := submit("vision", 2).(*state.Refusal); !ok || r.Code != state.Denied {
		t.Errorf("a gang: got %+v, want a refusal", r)
	}
	w.apply(NodeSync{Name: "open", Instance: "o", Hash: "o", Inventory: &node.Inventory{Hostname: "open", Cluster: 1, CPUs: 2, MemBytes: 64 << 30}})
	submit("fabric", 1)
	w.schedule()
	if at := w.c.jobs.get(1).Attempt; at == nil || at.Ranks[0].Alloc.Node != "open" {
		t.Errorf("the job is at %+v, want open", at)
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
	if diff := cmp.Diff(ports, j.Last().Ranks[0].Ports); diff != "" || j.State != job.Finished {
		t.Errorf("%s (-want +got):\n%s", j.State, diff)
	}
}
