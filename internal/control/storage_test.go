package control

import (
	"fmt"
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestStorage: a job comes to nodes that have what it mounts, waits while that is
// away, and is refused with what there is where no node has it.
func TestStorage(t *testing.T) {
	w := newWorld(t)
	has := func(name string, list ...node.Root) {
		w.apply(NodeSync{Name: name, Instance: name, Hash: fmt.Sprint(list), Inventory: &node.Inventory{Hostname: name, Cluster: 1, CPUs: 4, MemBytes: 64 << 30, Bridge: true, Storage: list}})
	}
	submit := func(name string, g job.Gbatch, mounts ...string) any {
		spec := &job.Spec{Name: name, Gbatch: &g}
		spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
		for _, m := range mounts {
			spec.Request.Docker.Storage = append(spec.Request.Docker.Storage, job.Storage{HostPath: m, ContainerPath: "/in" + m})
		}
		var id [16]byte
		copy(id[:], name)
		return w.apply(Submit{UUID: id, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
	}
	to := func(uri string) job.Gbatch { return job.Gbatch{Outputs: []job.Output{{Path: "/out", URI: uri}}} }
	has("n1", node.Root{Name: ".ssh"}, node.Root{Name: "/project"})
	has("n2", node.Root{Name: "/data", ReadOnly: true}, node.Root{Name: "/project"})
	has("n3", node.Root{Name: "/data"}, node.Root{Name: "/data/new"})
	for name, tc := range map[string]struct {
		g    job.Gbatch
		at   []string
		want string
	}{
		"nowhere":    {job.Gbatch{}, []string{"/tape/x"}, "no node has storage /tape/x (storage here: .ssh on 1 of 3 nodes, /data on 2 of 3 nodes, /data/new on 1 of 3 nodes, /project on 2 of 3 nodes)"},
		"like one":   {job.Gbatch{}, []string{"/projects"}, "no node has storage /projects"},
		"apart":      {job.Gbatch{}, []string{"/project", "/data/new"}, "storage /data/new is on 2 of 3 nodes"},
		"not beside": {to("file:///data/{job}/x"), []string{"/project"}, "storage /data for writing is on 1 of 3 nodes"},
	} {
		r, refused := submit(name, tc.g, tc.at...).(*state.Refusal)
		if name == "apart" { // n2 has both: what is below /data is there
			if refused {
				t.Errorf("%s: %+v", name, r)
			}
			continue
		}
		if !refused || !strings.Contains(r.Message, tc.want) || r.Path != "request.docker.storage" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	place := func(name string, g job.Gbatch, mounts ...string) string {
		t.Helper()
		got, ok := submit(name, g, mounts...).(Submitted)
		if !ok {
			t.Fatalf("%s is refused", name)
		}
		w.schedule()
		if j := w.c.jobs.get(got.Number); j.Last() != nil {
			return j.Last().Ranks[0].Alloc.Node
		}
		return ""
	}
	if at := place("keys", job.Gbatch{}, ".ssh", "tmpfs", "/project/lab"); at != "n1" {
		t.Errorf("with .ssh it is on %q, want n1", at)
	}
	if at := place("save", to("file:///data/out/{job}.txt")); at != "n3" {
		t.Errorf("what writes is on %q, want n3", at)
	}
	has("n1", node.Root{Name: ".ssh", Away: "directory /srv/keys is not there"}, node.Root{Name: "/project"})
	if at := place("waits", job.Gbatch{}, ".ssh"); at != "" {
		t.Errorf("storage is away and it starts on %s", at)
	}
	has("n1", node.Root{Name: ".ssh"}, node.Root{Name: "/project"})
	w.schedule()
	if j := w.c.jobs.get(w.c.jobs.next - 1); j.Last() == nil {
		t.Error("storage is back and the job does not start")
	}
}
