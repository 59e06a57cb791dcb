package ctld

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestCopyOfANode: what has the key and the state directory of a node, as they were before
// a job began there, never gets that job's order whole: neither in the same boot, as a copy of
// the whole machine would be, nor in another one, which is refused and told to the operator.
func TestCopyOfANode(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(hello(1), "")
	n.sync(nil)
	n.report(job.RankID{Job: 1, Attempt: 1}, node.PhaseRunning, nil)

	word := &api.SyncRequest{Instance: "i-n1", Boot: "b", InventoryHash: "h"}
	resp, err := s.NodeSync(t.Context(), "n1", word)
	if err != nil || len(resp.Desired) != 1 || resp.Desired[0].Run != nil {
		t.Errorf("a copy in the same boot was told %+v (%v)", resp, err)
	}
	word.Boot = "copied"
	if resp, err = s.NodeSync(t.Context(), "n1", word); err == nil || !strings.Contains(err.Error(), "this is not the machine that is node n1") {
		t.Errorf("a copy in another boot was told %+v (%v)", resp, err)
	}
	n.sync(nil)
	if d := s.job("1"); d.State != job.Running {
		t.Errorf("the job is %s", d.State)
	}
	d, err := s.Node(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	if last := d.Past[len(d.Past)-1]; !strings.Contains(last.Text, "another machine says that it is n1, with boot id copied, at ") {
		t.Errorf("the node's past lacks the copy: %+v", d.Past)
	}
}
