package control

import (
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestInventoryRefused: an inventory that cannot be used is refused alone. The node is heard, what it
// says of its ranks counts, the last good inventory stays, and nothing new starts there until it has another; it
// is asked for the bad one once.
func TestInventoryRefused(t *testing.T) {
	twice := []node.GPU{{UUID: "GPU-1", MemBytes: 80 << 30}, {UUID: "GPU-1", MemBytes: 80 << 30}}
	for name, bad := range map[string]node.Inventory{
		"a GPU twice": {CPUs: 4, MemBytes: 64 << 30, GPUs: twice}, "less than nothing": {CPUs: -1}, "more than there is": {CPUs: 4, MemBytes: 1 << 62}, "less disk than none": {DiskBytes: -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node("n1", 4, gpus{}, "i")
			good := w.c.nodes.get("n1")
			spec := &job.Spec{Name: "t"}
			spec.Request.Resources = job.Resources{CPUs: 1, CPUMemoryGB: 1}
			submit := Submit{User: "ann", Project: "vision", Spec: spec, Document: []byte("{}")}
			w.apply(submit)
			w.schedule()
			w.now += w.cfg.SuspectTime / 2
			said := NodeSync{Name: "n1", Instance: "i", Hash: "bad", Ranks: []node.RankStatus{{ID: w.c.jobs.get(1).RankID(0), Phase: node.PhaseRunning}}}
			if a := w.apply(said).(syncAnswer); !a.WantInventory {
				t.Errorf("it is not asked for: %+v", a)
			}
			said.Inventory = &bad
			if a := w.apply(said).(syncAnswer); a.WantInventory || !strings.Contains(a.Refused, "cannot be used") {
				t.Errorf("it is answered %+v", a)
			}
			said.Inventory = nil
			if a := w.apply(said).(syncAnswer); a.WantInventory || a.Refused == "" {
				t.Errorf("it is answered again %+v", a)
			}
			n := w.c.nodes.get("n1")
			if word, why := n.State(); word != "unhealthy" || !strings.Contains(why, "cannot be used") || n.LastSeen != w.now || n.Hash != good.Hash || n.Inventory.CPUs != 4 {
				t.Errorf("the node is %s (%s), heard at %d of %d, with %+v", word, why, n.LastSeen, w.now, n.Inventory)
			}
			if j := w.c.jobs.get(1); j.State != job.Running {
				t.Errorf("its job is %s", j.State)
			}
			submit.UUID[0] = 1
			if a := w.apply(submit); w.c.jobs.get(2) == nil {
				t.Fatalf("a new job: %+v", a)
			}
			w.schedule()
			if j := w.c.jobs.get(2); j.State != job.Queued {
				t.Errorf("a new job is %s", j.State)
			}
			w.node("n1", 4, gpus{}, "i")
			w.schedule()
			if word, why := w.c.nodes.get("n1").State(); word != "up" || w.c.jobs.get(2).State == job.Queued {
				t.Errorf("with a good one it is %s (%s), the new job %s", word, why, w.c.jobs.get(2).State)
			}
			refusal, _ := applyTo(w, NodeSync{Name: "n2", Instance: "x", Hash: "bad", Inventory: &bad}).(*state.Refusal)
			if refusal == nil || !strings.Contains(refusal.Message, "n2 is not taken in") || w.c.nodes.get("n2") != nil {
				t.Errorf("one that was never there: %v", refusal)
			}
		})
	}
}
