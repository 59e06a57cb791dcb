package ctld

import (
	"testing"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestCompleting: a job that is being cancelled says so, since when and until when
// at most, in its detail and in lists, is found by that, and no more when it has
// ended; over a restart too. One that its node ends is seen as soon as it says so.
func TestCompleting(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	for range 2 {
		s.submit(hello(1), "")
	}
	n.sync(nil)
	first, second := job.RankID{Job: 1, Attempt: 1}, job.RankID{Job: 2, Attempt: 1}
	n.report(first, node.PhaseRunning, nil)
	n.report(second, node.PhaseRunning, nil)
	ending := func(want ...string) {
		t.Helper()
		var got []string
		list, err := s.Jobs(t.Context(), client.JobFilter{States: []job.State{job.Completing}})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range list.Jobs {
			got = append(got, j.ID)
			if j.State != job.Running || j.Ending == nil {
				t.Errorf("job %s is %s, ending %+v", j.ID, j.State, j.Ending)
			}
		}
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("being ended: %v, want %v", got, want)
		}
	}
	ending()
	s.act("cancel", "1")
	ending("1")
	e := s.job("1").Ending
	if e == nil || e.Since.IsZero() || !e.Kill.After(e.Since) || e.Then != job.Cancelled {
		t.Fatalf("it is being ended as %+v", e)
	}
	s.stop()
	s.start()
	if after := s.job("1").Ending; after == nil || !after.Since.Equal(e.Since) {
		t.Errorf("after a restart it is being ended as %+v, before as %+v", after, e)
	}
	n.s, n.seen = s, 0
	n.sync(nil)
	n.held[second] = node.RankStatus{ID: second, Phase: node.PhaseRunning, Stopping: true}
	n.sync(nil)
	ending("1", "2")
	n.report(first, node.PhaseEnded, &node.Exit{Reason: job.ByUser, StartedMS: 1, EndedMS: 2})
	if d := s.job("1"); d.State != job.Cancelled || d.Ending != nil {
		t.Errorf("in the end it is %s, ending %+v", d.State, d.Ending)
	}
	ending("2")
}
