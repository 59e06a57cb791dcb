package control

import (
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestSeveralPrograms: a job whose programs run at the same time starts on no node that would run one of them alone.
func TestSeveralPrograms(t *testing.T) {
	w := newWorld(t)
	node := func(name string, several bool) {
		w.apply(NodeSync{Name: name, Instance: name, Hash: name, Inventory: &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, CPUs: 4, MemBytes: 64 << 30, Several: several, Divides: several}})
	}
	submit := func(name string, g *job.Gbatch) any {
		spec := &job.Spec{Name: name, Gbatch: g}
		spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
		var id [16]byte
		copy(id[:], name)
		return w.apply(Submit{UUID: id, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	}
	node("old", false)
	for name, g := range map[string]*job.Gbatch{
		"beside":  {Beside: []job.Before{{Name: "db", Image: "db"}}},
		"divided": {Before: []job.Before{{Name: "init", Image: "init", OwnGPUs: 1}}},
		"sidecar": {Before: []job.Before{{Name: "proxy", Image: "proxy", Sidecar: true}}},
	} {
		if r, ok := submit(name, g).(*state.Refusal); !ok || !strings.Contains(r.Message, map[bool]string{true: "GPUS_DIVIDED", false: "PROGRAMS_BESIDE"}[name == "divided"]) {
			t.Errorf("%s, where no node can: %+v", name, r)
		}
	}
	if r, ok := submit("first", &job.Gbatch{Before: []job.Before{{Name: "init", Image: "init"}}}).(*state.Refusal); ok {
		t.Errorf("a program that runs before: %v", r)
	}
	node("new", true)
	w.restart() // what the node said is kept
	submit("beside", &job.Gbatch{Beside: []job.Before{{Name: "db", Image: "db"}}})
	w.schedule()
	if at := w.c.jobs.get(2).Attempt; at == nil || at.Ranks[0].Alloc.Node != "new" {
		t.Errorf("it is at %+v, want the node that can", at)
	}
}
