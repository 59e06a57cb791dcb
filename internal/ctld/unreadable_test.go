package ctld

import (
	"strings"
	"testing"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestUnreadableRecordsOfAJob garbles what is stored with one job, each record in turn: that job
// fails with the reason and is not tried again, the others of its node start and go on, and one
// that runs stays as it is.
func TestUnreadableRecordsOfAJob(t *testing.T) {
	for name, kind := range map[string]state.Kind{"document": state.KindSpec, "sealed values": state.KindSecret} {
		for _, value := range [][]byte{[]byte("garbled"), nil} {
			t.Run(name, func(t *testing.T) {
				s := newSite(t, nil)
				n := s.node("n1")
				garble := func(num job.Number) {
					t.Helper()
					if err := s.server.loop.Keep(t.Context(), state.Record{Kind: kind, Job: num, Value: value}); err != nil {
						t.Fatal(err)
					}
				}
				s.submit(withSecret(`{"name":"A","value":"a"}`), "")
				n.sync(nil)
				n.say(node.RankStatus{ID: job.RankID{Job: 1, Attempt: 1}, Phase: node.PhaseRunning, Secrets: 1})
				garble(1)
				n.seen, n.held = 0, map[job.RankID]node.RankStatus{}
				n.say(node.RankStatus{ID: job.RankID{Job: 1, Attempt: 1}, Phase: node.PhaseRunning}) // which lost its secrets
				s.submit(withSecret(`{"name":"A","value":"a"}`), "")
				s.submit(hello(1), "")
				garble(2)
				for range 3 {
					n.sync(nil)
				}
				v := s.server.loop.View()
				if j := v.Job(1); j.State != job.Running {
					t.Errorf("the job that runs is %s: %s", j.State, j.Text)
				}
				if j := v.Job(2); j.State != job.Failed || j.Reason != job.Server || !strings.Contains(j.Text, "cannot be read from the controller's store") {
					t.Errorf("the job whose record is garbled is %s %s: %s", j.State, j.Reason, j.Text)
				}
				if n.runs[job.RankID{Job: 3, Attempt: 1}] == nil || n.runs[job.RankID{Job: 2, Attempt: 1}] != nil {
					t.Errorf("the node was told of %v", n.runs)
				}
			})
		}
	}
}

// TestUnreadableIsSaid: who asks for a job with a damaged record is told which it is.
func TestUnreadableIsSaid(t *testing.T) {
	for what, r := range map[string]state.Record{
		"document":             {Kind: state.KindSpec, Job: 1},
		"timeline":             {Kind: state.KindEvent, Job: 1, Seq: 1},
		"record of an attempt": {Kind: state.KindAttempt, Job: 1, Seq: 1},
	} {
		s := newSite(t, nil)
		n, erin := s.node("n1"), s.user("erin")
		if _, err := erin.Submit(t.Context(), hello(1), ""); err != nil {
			t.Fatal(err)
		}
		n.sync(nil)
		n.say(node.RankStatus{ID: job.RankID{Job: 1, Attempt: 1}, Phase: node.PhaseEnded, Exit: &node.Exit{}})
		r.Value = []byte("garbled")
		if err := s.server.loop.Keep(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		_, err := erin.Job(t.Context(), "1", client.JobOptions{})
		if want := "the " + what + " of job 1 cannot be read from the controller's store"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("said %v, want %s", err, want)
		}
	}
}
