package ctld

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestCurves: what a rank used is there while it runs, after a restart and after its
// end, for those who may read the job; a node speaks of its own ranks only.
func TestCurves(t *testing.T) {
	s := newSite(t, nil)
	n, other := s.gpuNode("n1", "GPU-1"), s.node("n2")
	s.submit(&api.SubmitRequest{Job: []byte(gpuJob)}, "")
	waitFor(t, "the job has its GPU", func() bool {
		n.sync(nil)
		return len(n.held) == 1
	})
	id := job.RankID{Job: 1, Attempt: 1}
	n.report(id, node.PhaseRunning, nil)
	say := func(n *fakeNode, seconds int64) {
		mem := int64(40 << 30)
		use := api.RankUse{ID: id, LiveUse: node.LiveUse{AtMS: 1000 * seconds, CPUSeconds: 0.5 * float64(seconds), Mem: 1 << 20, GPUMem: &mem, GPU: &node.GPUUse{Utilization: 60, Samples: seconds}}}
		req := &api.SyncRequest{Instance: "i-" + n.name, Boot: "b", InventoryHash: "h", Records: n.records, Use: []api.RankUse{use}}
		for _, st := range n.held {
			req.Ranks = append(req.Ranks, st)
		}
		if _, err := s.NodeSync(t.Context(), n.name, req); err != nil {
			t.Fatal(err)
		}
	}
	say(n, 10)
	say(n, 20)
	say(other, 99)
	read := func() *api.Curves {
		t.Helper()
		got, err := s.Curves(t.Context(), "1", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	half, sixty, mem, mib := 0.5, 60.0, 4.3e10, 1.05e6
	list := func(v float64) []*float64 { return []*float64{&v} }
	want := &api.Curves{Attempt: 1, StepS: 10, At: []int64{0}, CPU: list(half), GPU: list(sixty), GPUMem: list(mem), Mem: list(mib),
		Granted: api.Granted{GPUs: 1, CPUs: 1, MemBytes: 1 << 30, GPUMemBytes: 80 << 30}}
	same := func(when string) {
		t.Helper()
		got := read()
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(api.Curves{}, "Begin")); diff != "" || got.Begin == nil {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	same("while it runs")
	s.stop()
	s.start()
	same("after a restart")
	n.sync(nil)
	n.report(id, node.PhaseEnded, &node.Exit{StartedMS: 1, EndedMS: 2})
	waitFor(t, "the job is over", func() bool { return s.job("1").State.Final() })
	same("after its end")
	for name, ask := range map[string]struct {
		id   string
		rank int
		try  uint32
	}{"rank": {"1", 7, 0}, "try": {"1", 0, 9}, "job": {"99", 0, 0}} {
		if got, err := s.Curves(t.Context(), ask.id, ask.rank, ask.try); err == nil {
			t.Errorf("a %s that is not there: %+v", name, got)
		}
	}
}
