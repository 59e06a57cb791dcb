package ctld

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

// TestQueuedFor: a node is told for how long a job could have begun if nothing but its place was missing,
// and nothing of one that was held, as its image's tag may stand for something else since.
func TestQueuedFor(t *testing.T) {
	s := newSite(t, nil)
	word := &api.SyncRequest{Instance: "i-n1", Boot: "b", InventoryHash: "h", Inventory: &node.Inventory{Hostname: "n1", Cluster: 1, Bridge: true, CPUs: 8, MemBytes: 32 << 30}}
	told := map[uint64]int64{}
	sync := func() {
		for range 3 {
			resp, err := s.NodeSync(t.Context(), "n1", word)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range resp.Desired {
				if o.Run != nil {
					told[uint64(o.ID.Job)] = o.Run.QueuedMS
				}
			}
			word.Records = resp.Records
		}
	}
	sync() // its disk knows of an answer then
	s.submit(hello(1), "")
	held := hello(1)
	held.Hold = true
	s.submit(held, "")
	if _, err := s.Action(t.Context(), "release", &api.ActionRequest{IDs: []string{"2"}}); err != nil {
		t.Fatal(err)
	}
	sync()
	if len(told) != 2 || told[1] == 0 || told[2] != 0 {
		t.Errorf("a node is told of jobs and how long they could have begun: %v; want some time of 1, and none of 2", told)
	}
}
