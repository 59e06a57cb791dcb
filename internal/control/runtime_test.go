package control

import (
	"strings"
	"testing"

	"gbatch/internal/control/ask"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestRuntimes: a job comes to nodes that have its runtime, for what it asks
// beside it, and is refused with the names of those that there are.
func TestRuntimes(t *testing.T) {
	w := newWorld(t)
	w.cfg.Projects["walled"] = ask.Project{Runtime: "gvisor"}
	w.restart()
	submit := func(name, project, runtime string, gpus float64) any {
		spec := &job.Spec{Name: name, Gbatch: &job.Gbatch{Runtime: runtime}}
		spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1, GPUs: gpus}
		var id [16]byte
		copy(id[:], name)
		return w.apply(Submit{UUID: id, User: "ann", Project: project, Spec: spec, Document: []byte("{}")})
	}
	add := func(name string, list ...node.Runtime) {
		gpu := node.GPU{UUID: "GPU-" + name, Model: "H100", MemBytes: 80 << 30}
		w.apply(NodeSync{Name: name, Instance: name, Hash: name, Inventory: &node.Inventory{Hostname: name, Cluster: 1, CPUs: 4, MemBytes: 64 << 30, Bridge: true, Runtimes: list, GPUs: []node.GPU{gpu}}})
	}
	add("n1")
	if r, ok := submit("x", "vision", "gvisor", 0).(*state.Refusal); !ok || !strings.Contains(r.Hint, "no node has the runtime gvisor, or any other") {
		t.Errorf("without any: %+v", r)
	}
	add("n2", node.Runtime{Name: "gvisor", NoGPUs: true}, node.Runtime{Name: "runc"})
	for _, tc := range []struct {
		project, runtime string
		gpus             float64
		text, hint       string
	}{
		{"vision", "kata", 0, "RUNTIME_kata", "runtimes here: gvisor (no GPUs) on n2; runc on n2"},
		{"vision", "gvisor", 1, "RUNTIME_GPU_gvisor", "gvisor (no GPUs) on n2"},
		{"walled", "", 0, "jobs of project walled are run by the runtime gvisor", ""},
		{"walled", "runc", 0, "jobs of project walled are run by the runtime gvisor", ""},
	} {
		r, ok := submit("x", tc.project, tc.runtime, tc.gpus).(*state.Refusal)
		if !ok || !strings.Contains(r.Message, tc.text) || !strings.Contains(r.Hint, tc.hint) {
			t.Errorf("%+v: %+v", tc, r)
		}
	}
	for _, j := range []struct {
		name, project, runtime string
		gpus                   float64
	}{{"one", "walled", "gvisor", 0}, {"two", "vision", "runc", 1}} {
		if r, refused := submit(j.name, j.project, j.runtime, j.gpus).(*state.Refusal); refused {
			t.Fatalf("%s: %+v", j.name, r)
		}
	}
	w.schedule()
	for n := job.Number(1); n <= 2; n++ {
		if at := w.c.jobs.get(n).Attempt; at == nil || at.Ranks[0].Alloc.Node != "n2" {
			t.Errorf("job %d is at %+v, want n2", n, at)
		}
	}
}
