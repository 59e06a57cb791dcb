package control

import (
	"strings"
	"testing"

	"gbatch/internal/control/ask"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestCapabilities: a job has those only that its project and its node allow.
func TestCapabilities(t *testing.T) {
	w := newWorld(t)
	w.cfg.Projects["net"] = ask.Project{Capabilities: []job.Capability{"NET_RAW", "SETFCAP"}}
	w.restart()
	submit := func(name, project string, want ...job.Capability) any {
		spec := &job.Spec{Name: name, Gbatch: &job.Gbatch{Capabilities: want}}
		spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
		var id [16]byte
		copy(id[:], name)
		return w.apply(Submit{UUID: id, User: "ann", Project: project, Spec: spec, Document: []byte("{}")})
	}
	add := func(name string, caps ...job.Capability) {
		w.apply(NodeSync{Name: name, Instance: name, Hash: name, Inventory: &node.Inventory{Hostname: name, Cluster: 1, CPUs: 4, MemBytes: 64 << 30, Bridge: true, Capabilities: caps}})
	}
	add("n1")
	add("n2", "NET_RAW")
	for _, tc := range []struct {
		project, text, hint string
		want                job.Capability
	}{
		{"vision", "jobs of project vision may not have the capability NET_RAW", "capabilities of the project, and allowCapabilities in gnoded.yaml", "NET_RAW"},
		{"net", "jobs of project net may not have the capability MKNOD", "allowCapabilities", "MKNOD"},
		{"net", "CAP_SETFCAP", "allowCapabilities", "SETFCAP"},
	} {
		r, ok := submit("x", tc.project, tc.want).(*state.Refusal)
		if !ok || !strings.Contains(r.Message, tc.text) || !strings.Contains(r.Hint, tc.hint) {
			t.Errorf("%s of %s: %+v", tc.want, tc.project, r)
		}
	}
	submit("ping", "net", "NET_RAW")
	w.schedule()
	if at := w.c.jobs.get(1).Attempt; at == nil || at.Ranks[0].Alloc.Node != "n2" {
		t.Errorf("the job is at %+v, want n2", at)
	}
}
