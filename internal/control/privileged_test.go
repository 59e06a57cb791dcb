package control

import (
	"strings"
	"testing"

	"gbatch/internal/control/ask"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestPrivileged: only jobs of projects that may, on nodes that allow it, and
// alone there.
func TestPrivileged(t *testing.T) {
	w := newWorld(t)
	w.cfg.Projects["ops"] = ask.Project{Privileged: true}
	w.restart()
	submit := func(name, project string, g *job.Gbatch) any {
		spec := &job.Spec{Name: name, Gbatch: g}
		spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
		var id [16]byte
		copy(id[:], name)
		return w.apply(Submit{UUID: id, User: "ann", Project: project, Spec: spec, Document: []byte("{}")})
	}
	node := func(name string, privileged bool) {
		w.apply(NodeSync{Name: name, Instance: name, Hash: name, Inventory: &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, CPUs: 4, MemBytes: 64 << 30, Privileged: privileged}})
	}
	node("n1", false)
	refused := func(answer any, part string) {
		t.Helper()
		if r, ok := answer.(*state.Refusal); !ok || !strings.Contains(r.Message, part) {
			t.Errorf("got %+v, want a refusal with %q", answer, part)
		}
	}
	refused(submit("a", "vision", &job.Gbatch{Privileged: true}), "may not be privileged")
	refused(submit("a", "ops", &job.Gbatch{Privileged: true}), `PRIVILEGED`)
	node("n2", true)
	submit("small", "vision", &job.Gbatch{NodeNames: []string{"n1"}})
	submit("root", "ops", &job.Gbatch{Privileged: true})
	w.schedule()
	submit("other", "vision", &job.Gbatch{NodeNames: []string{"n2"}})
	w.schedule()
	at := w.c.jobs.get(2).Last()
	if at == nil || at.Ranks[0].Alloc.Node != "n2" {
		t.Fatalf("the privileged job is at %+v, want n2", at)
	}
	if j := w.c.jobs.get(3); j.State != job.Queued {
		t.Errorf("a job shares the node of a privileged one: %s", j.State)
	}
}
