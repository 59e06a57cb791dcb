package ctld

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestToldAfterAnAnswer: a node is told of a job when it is recorded that its disk knows of an answer, which its second word says.
// One of an older program, which keeps none, is told by its second word, too.
func TestToldAfterAnAnswer(t *testing.T) {
	for name, tells := range map[string]bool{"keeps what it is told": true, "an older program": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			s.submit(hello(1), "")
			word := &api.SyncRequest{Instance: "i-n1", Boot: "b", InventoryHash: "h", Inventory: &node.Inventory{Hostname: "n1", Cluster: 1, Bridge: true, CPUs: 8, MemBytes: 32 << 30}}
			sync := func() *api.SyncResponse {
				resp, err := s.NodeSync(t.Context(), "n1", word)
				if err != nil {
					t.Fatal(err)
				}
				return resp
			}
			sync()
			resp := sync() // the answer before is lost
			if d := s.job("1"); d.State != job.Assigned || !resp.Changed || len(resp.Desired) != 0 {
				t.Errorf("the job is %s, and a node that knows of no answer is told %+v", d.State, resp)
			}
			if word.Seen = resp.Version; tells {
				word.Records = resp.Records
			}
			if resp = sync(); !resp.Changed || len(resp.Desired) != 1 || resp.Desired[0].Run == nil {
				t.Errorf("a node that knows of one is told %+v", resp)
			}
		})
	}
}
