package ctld

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestOlderNodeHasWhatWasGiven: a node that goes back to a version which begins at once what it was given ahead is not told to end
// it where that was taken back: it has begun, and ends as its program does.
func TestOlderNodeHasWhatWasGiven(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	inv := node.Inventory{Hostname: "n1", Cluster: 1, Bridge: true, Gang: true, CPUs: 1, MemBytes: 32 << 30, Ahead: true}
	n.sync(&inv)
	id := func(n job.Number) job.RankID { return job.RankID{Job: n, Attempt: 1} }
	given := func(of job.Number) {
		t.Helper()
		waitFor(t, "the node has it", func() bool { n.sync(nil); return n.runs[id(of)] != nil })
	}
	s.submit(hello(1), "")
	given(1)
	n.report(id(1), node.PhaseRunning, nil)
	n.report(id(1), node.PhaseEnded, &node.Exit{StartedMS: 1, EndedMS: 2}) // they are short
	for range 3 {
		s.submit(hello(1), "")
	}
	given(4)
	n.report(id(2), node.PhaseRunning, nil)
	s.act("hold", "3")
	s.act("hold", "4")
	waitFor(t, "both are taken back", func() bool { n.sync(nil); return n.stops[id(3)] != nil && n.stops[id(4)] != nil })

	inv.Ahead, n.seen = false, 0
	n.sync(&inv)
	if len(n.stops) != 0 {
		t.Errorf("an older node is told to end %v", n.stops)
	}
	n.report(id(3), node.PhaseEnded, &node.Exit{StartedMS: 1, EndedMS: 2})
	n.report(id(4), node.PhaseEnded, &node.Exit{Code: 3, Reason: job.ExitCode, StartedMS: 1, EndedMS: 2})
	if got := s.job("3").State; got != job.Finished {
		t.Errorf("what ended well is %s", got)
	}
	if d := s.job("4"); d.State != job.Failed || d.Reason != string(job.ExitCode) {
		t.Errorf("what failed is %s, %s", d.State, d.Reason)
	}
}
