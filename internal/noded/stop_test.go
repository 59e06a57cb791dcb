package noded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/identity"
)

// patient is a job that says when its handler is set and what it is sent.
const patient = `trap 'echo got TERM; exit 9' TERM; echo ready; while :; do sleep 0.05; done`

// stubborn ignores all that can be ignored.
const stubborn = `trap '' TERM INT HUP; echo ready; while :; do sleep 0.05; done`

// ready waits until a rank has said so.
func (s *site) ready(id job.RankID) {
	s.t.Helper()
	b := s.log(api.StreamRequest{ID: "ready" + id.String(), Kind: "log", Rank: id, Follow: true})
	until(s.t, id.String()+" to be ready", func() bool {
		text, _ := b.now()
		return strings.Contains(text, "ready")
	})
	s.phase(id, node.PhaseRunning) // its log can be a moment ahead
}

func TestStop(t *testing.T) {
	s := newSite(t, nil).start()
	stop := api.Stop{Signal: "TERM", GraceMS: 20_000, Reason: job.ByUser, Text: "cancelled by alice"}
	hard := stop
	hard.GraceMS = 100
	tests := []struct {
		name, line string
		stop       api.Stop
		want       node.Exit
	}{
		{"graceful", patient, stop, node.Exit{Code: 9, Reason: job.ByUser, Message: "cancelled by alice"}},
		{"stubborn", stubborn, hard, node.Exit{Code: 137, Signal: 9, Reason: job.ByUser, Message: "cancelled by alice"}},
		{"children", "(" + stubborn + ") & wait; wait", hard, node.Exit{Code: 137, Signal: 9, Reason: job.ByUser, Message: "cancelled by alice"}},
	}
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			id := rankID(i + 1)
			s.want(id, order(tc.line))
			s.ready(id)
			s.stop(id, tc.stop)
			if diff := cmp.Diff(&tc.want, s.exit(id), ignoreFigures); diff != "" {
				t.Errorf("exit (-want +got):\n%s", diff)
			}
			s.drop(id)
		})
	}
	s.holdsNothing()
}

// TestStopSooner: a second stop with less patience shortens the first.
func TestStopSooner(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(stubborn))
	s.ready(id)
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 3_600_000, Reason: job.Preempted, Text: "first"})
	s.await("the stop to be known", func() bool { return s.last.Seen == s.version })
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 50, Reason: job.ByUser, Text: "second"})
	want := &node.Exit{Code: 137, Signal: 9, Reason: job.Preempted, Message: "first"}
	if diff := cmp.Diff(want, s.exit(id), ignoreFigures); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
	s.empty()
}

// TestStopBeforeStart: an order that comes with its stop never runs.
func TestStopBeforeStart(t *testing.T) {
	s := newSite(t, nil)
	id := rankID(1)
	s.want(id, order("echo never"))
	s.fakeController.stop(id, api.Stop{Signal: "TERM", GraceMS: 1000, Reason: job.ByUser, Text: "too late"})
	s.start()
	e := s.exit(id)
	if e.Reason != job.ByUser || e.StartedMS != 0 {
		t.Errorf("exit %+v", e)
	}
	s.empty()
}

// TestUnwanted: a rank in no order is ended and forgotten.
func TestUnwanted(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(patient))
	s.ready(id)
	s.drop(id)
	s.holdsNothing()
}

func TestTimeLimit(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(stubborn, func(o *api.RunOrder) { o.LimitMS, o.GraceMS = 300, 100 }))
	e := s.exit(id)
	want := &node.Exit{Code: 137, Signal: 9, Reason: job.MaxRuntime, Message: "time limit of 300ms reached"}
	if diff := cmp.Diff(want, e, ignoreFigures); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
	if ran := e.EndedMS - e.StartedMS; ran < 300 {
		t.Errorf("ended after %d ms", ran)
	}
	s.empty()
}

// TestTimeLimitOverRestart: the limit counts from the first instruction also
// when the daemon was away, and so does a stop under way.
func TestTimeLimitOverRestart(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(stubborn, func(o *api.RunOrder) { o.LimitMS, o.GraceMS = 5000, 100 }))
	s.ready(id)
	s.halt()
	away := time.Now()
	until(t, "the limit to pass without a daemon", func() bool { return time.Since(away) > 5100*time.Millisecond })
	s.start()
	e := s.exit(id)
	want := &node.Exit{Code: 137, Signal: 9, Reason: job.MaxRuntime, Message: "time limit of 5s reached"}
	if diff := cmp.Diff(want, e, ignoreFigures); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
	s.empty()
}

// TestStopOverRestart: a daemon that comes back goes on with a stop and knows
// why, though the controller no longer says so.
func TestStopOverRestart(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(stubborn))
	s.ready(id)
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 1500, Reason: job.Preempted, Text: "make room"})
	until(t, "the stop to be noted", func() bool {
		_, err := os.Stat(filepath.Join(s.a.node.Dir(id), "stop.json"))
		return err == nil
	})
	s.halt()
	s.setDown(true)
	s.start()
	s.setDown(false)
	want := &node.Exit{Code: 137, Signal: 9, Reason: job.Preempted, Message: "make room"}
	if diff := cmp.Diff(want, s.exit(id), ignoreFigures); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
	s.empty()
}

// TestLease: without the controller ranks go on for the lease, and end then.
func TestLease(t *testing.T) {
	s := newSite(t, nil)
	s.start()
	id := rankID(1)
	s.want(id, order(stubborn))
	s.ready(id)
	s.setLease(1500)
	s.setDown(true)
	until(t, "the rank to end by itself", func() bool { return s.a.Running() == 0 })
	s.setDown(false)
	e := s.exit(id)
	if e.Reason != job.NodeFail || !strings.HasPrefix(e.Message, "lost contact with the controller for ") {
		t.Errorf("exit %+v", e)
	}
	until(t, "the lease to be renewed", func() bool {
		return s.a.contact.Silence() < time.Duration(s.leaseMS)*time.Millisecond
	})
	s.empty()
}

// setLease gives the node another lease, and waits until it is on its disk. A
// short one must not run out while a rank still starts on a busy machine.
func (s *site) setLease(ms int64) {
	s.t.Helper()
	s.mu.Lock()
	s.leaseMS = ms
	s.version++ // so that the open poll is answered
	s.touch()
	s.mu.Unlock()
	until(s.t, "the lease to be noted", func() bool {
		text, err := os.ReadFile(filepath.Join(identity.ContactRun, s.cfg.Name))
		return err == nil && strings.Contains(string(text), fmt.Sprintf(`"leaseMs":%d`, ms))
	})
}

// TestLeaseOverRestart: a daemon that was away for longer than the lease ends
// what it finds, before it has asked anyone.
func TestLeaseOverRestart(t *testing.T) {
	s := newSite(t, nil)
	s.start()
	id := rankID(1)
	s.want(id, order(stubborn))
	s.ready(id)
	s.setLease(1000)
	s.halt()
	s.setDown(true)
	away := time.Now()
	until(t, "the lease to run out without a daemon", func() bool { return time.Since(away) > 1100*time.Millisecond })
	s.start()
	until(t, "the rank to end by itself", func() bool { return s.a.Running() == 0 })
	s.setDown(false)
	if e := s.exit(id); e.Reason != job.NodeFail {
		t.Errorf("exit %+v", e)
	}
	s.empty()
}
