package control

import (
	"encoding/json"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// FuzzNodeSync has a node report anything, while it runs a job of its own and
// another one runs beside it: every invariant holds, and the other's job goes on.
func FuzzNodeSync(f *testing.F) {
	for _, text := range []string{
		`{"Inventory":{"hostname":"n1","cluster":1,"cpus":4,"memBytes":68719476736,"gpus":[{"uuid":"GPU-0","model":"A100","numa":-1}]}}`,
		`{"Inventory":{"cpus":-1,"memBytes":-9223372036854775808,"gpus":[{"uuid":""},{"uuid":""}]}}`,
		`{"Ranks":[{"id":{"job":1,"attempt":1,"rank":0},"phase":"running","started":5}]}`,
		`{"Ranks":[{"id":{"job":2,"attempt":1,"rank":0},"phase":"exited","exit":{"code":1,"reason":"NODE"}}]}`,
		`{"Ranks":[{"id":{"job":1,"attempt":4294967295,"rank":-1},"phase":"exited","exit":{"code":-1}}],"Unhealthy":["disk"]}`,
		`{"Instance":"other","Boot":"b","Loads":[{"UUID":"GPU-0","Permille":-5}],"Prepulled":[{}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ev := NodeSync{Instance: "i1", Hash: "h1"}
		if json.Unmarshal(text, &ev) != nil {
			return
		}
		w := newWorld(t)
		for _, name := range []string{"n1", "n2"} {
			w.apply(NodeSync{Name: name, Instance: "i1", Hash: "h1", Inventory: &node.Inventory{Hostname: name, Cluster: 1, CPUs: 4, MemBytes: 64 << 30, Bridge: true}})
			spec := &job.Spec{Name: name}
			spec.Request.Resources = job.Resources{CPUs: 4, CPUMemoryGB: 1}
			var id [16]byte
			copy(id[:], name)
			w.apply(Submit{UUID: id, User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")})
			w.schedule()
		}
		ev.Name, ev.Ahead = "n1", false // that is signed by the controller
		for range 2 {
			w.apply(ev)
			w.schedule()
			if err := w.c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		other := w.c.jobs.get(2)
		if other.Attempt == nil || other.Attempt.Attempt != 1 || other.Attempt.Ranks[0].Alloc.Node != "n2" || !other.State.Active() {
			t.Errorf("the job on another node is %s: %+v", other.State, other.Attempt)
		}
	})
}
