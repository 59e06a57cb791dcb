package ctld

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestHaltAndContinue: a job that is halted over the API becomes a new one that
// has its document, its credentials and its place, over restarts too; and the
// credentials go with the last of them.
func TestHaltAndContinue(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	doc := `{"name":"train","request":{"resources":{"gpus":0,"cpus":8,"cpuMemoryGb":1},
		"docker":{"image":"user:secret@registry.example.org/train:1","command":"true"},
		"scheduling":{"restartable":true}},"gbatch":{"haltSignal":"USR1","stopSignal":"INT","stopGrace":"2 hours"}}`
	r := s.submit(&api.SubmitRequest{Job: []byte(doc)}, "")
	if len(r.Notes) == 0 {
		t.Error("a grace above the site's was cut without a word")
	}
	n.sync(nil)
	first := job.RankID{Job: 1, Attempt: 1}
	if run := n.runs[first]; run == nil || run.GraceMS != 3600_000 {
		t.Fatalf("order is %+v", n.runs[first])
	}
	n.report(first, node.PhaseRunning, nil)
	if got := s.act("signal", "1"); got[0].Error == nil {
		t.Error("a signal without a name was taken")
	}
	if got := s.act("halt", "1"); got[0].After != job.MustHalt {
		t.Fatalf("halt answered %+v", got)
	}
	s.stop()
	s.start()
	n.s, n.seen = s, 0
	n.sync(nil)
	if stop := n.stops[first]; stop == nil || stop.Signal != "USR1" {
		t.Fatalf("stop is %+v", stop)
	}
	n.held[first] = node.RankStatus{ID: first, Phase: node.PhaseRunning, Stopping: true}
	n.sync(nil)
	if d := s.job("1"); d.State != job.Halting {
		t.Fatalf("job 1 is %s", d.State)
	}
	n.report(first, node.PhaseEnded, &node.Exit{Reason: job.ByUser, StartedMS: 1, EndedMS: 2})
	old, next := s.job("1"), s.job("2")
	if old.State != job.Halted || old.Successor != 2 || next.Restart == nil || next.Restart.InitialJobUUID != old.UUID || next.Restart.RestartCount != 1 ||
		!next.Submitted.Equal(old.Submitted) || next.Spec.Name != "train" {
		t.Fatalf("after the halt: %+v\n%+v", old.Job, next.Job)
	}
	s.stop()
	s.start()
	n.s, n.seen = s, 0
	n.sync(nil)
	n.sync(nil)
	second := job.RankID{Job: 2, Attempt: 1}
	run := n.runs[second]
	if run == nil || run.Registry == nil || run.Registry.Password != "secret" || run.Initial != old.UUID || run.Restarts != 1 {
		t.Fatalf("the second order is %+v", run)
	}
	n.report(second, node.PhaseEnded, &node.Exit{StartedMS: 1, EndedMS: 2})
	if _, err := s.server.jobs.Unseal(1); err == nil {
		t.Error("the credentials are kept after the end")
	}
	for _, a := range []string{"requeue", "halt", "update"} {
		if got := s.act(a, "2"); got[0].Error == nil {
			t.Errorf("%s of an ended job: %+v", a, got[0])
		}
	}
}
