package control

import (
	"cmp"
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
		w.apply(NodeSync{Name: name, Instance: name, Hash: name, Inventory: &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, CPUs: 4, MemBytes: 64 << 30, Several: several, Divides: several, Covers: several}})
	}
	submit := func(name string, g *job.Gbatch) any {
		spec := &job.Spec{Name: name, Gbatch: g}
		spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
		spec.Request.Docker.Storage = []job.Storage{{HostPath: job.ScratchHostPath, Volume: "v", ContainerPath: "/data"}}
		var id [16]byte
		copy(id[:], name)
		return w.apply(Submit{UUID: id, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	}
	node("old", false)
	for name, g := range map[string]*job.Gbatch{
		"beside":  {Beside: []job.Before{{Name: "db", Image: "db"}}},
		"divided": {Before: []job.Before{{Name: "init", Image: "init", OwnGPUs: 1}}},
		"sidecar": {Before: []job.Before{{Name: "proxy", Image: "proxy", Sidecar: true}}},
		"files":   {Files: []job.File{{Path: "/data/a"}}},
	} {
		want := map[string]string{"divided": "GPUS_DIVIDED", "files": "FILES_IN_MOUNTS"}[name]
		if r, ok := submit(name, g).(*state.Refusal); !ok || !strings.Contains(r.Message, cmp.Or(want, "PROGRAMS_BESIDE")) {
			t.Errorf("%s, where no node can: %+v", name, r)
		}
	}
	if r, ok := submit("beside the mount", &job.Gbatch{Files: []job.File{{Path: "/database"}}}).(*state.Refusal); ok {
		t.Errorf("a file in no mount: %v", r)
	}
	if r, ok := submit("first", &job.Gbatch{Before: []job.Before{{Name: "init", Image: "init"}}}).(*state.Refusal); ok {
		t.Errorf("a program that runs before: %v", r)
	}
	node("new", true)
	w.restart() // what the node said is kept
	submit("beside", &job.Gbatch{Beside: []job.Before{{Name: "db", Image: "db"}}})
	w.schedule()
	if at := w.c.jobs.get(3).Attempt; at == nil || at.Ranks[0].Alloc.Node != "new" {
		t.Errorf("it is at %+v, want the node that can", at)
	}
}
