package noded

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// hears counts what it is sent and goes on.
const hears = `trap 'echo usr1' USR1; trap 'echo usr2' USR2; echo ready; while :; do sleep 0.05; done`

// signals orders the rank's signals anew, all of them.
func (s *site) signals(id job.RankID, list ...api.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.desired[id]
	o.Signals = list
	s.desired[id] = o
	s.version++
	s.touch()
}

func (s *site) signalled(id job.RankID, seq uint32) {
	s.t.Helper()
	until(s.t, "the signal to be sent", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.status[id].Signalled >= seq
	})
}

// Signals come once each and in order, also when the order is repeated and the
// daemon is killed in between; a stop is told when its signal was sent.
func TestSignals(t *testing.T) {
	s := newSite(t, nil)
	p := s.spawn(0)
	id := rankID(1)
	s.want(id, order(hears))
	b := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	said := func(words string) {
		t.Helper()
		until(t, words, func() bool {
			text, _ := b.now()
			return strings.Contains(text, words)
		})
	}
	said("ready")
	one, two := api.Signal{Seq: 1, Name: "USR1"}, api.Signal{Seq: 2, Name: "USR2"}
	s.signals(id, one)
	s.signalled(id, 1)
	said("usr1")
	p.kill()
	p = s.spawn(1)
	s.phase(id, node.PhaseRunning)
	s.signals(id, one, two)
	s.signalled(id, 2)
	b = s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	said("usr2")
	s.stop(id, api.Stop{Signal: "USR1", GraceMS: 60_000, Reason: job.ByUser})
	until(t, "the stop to be told", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.status[id].Stopping
	})
	until(t, "the stop's signal", func() bool {
		text, _ := b.now()
		return strings.Count(text, "usr1") == 2
	})
	s.stop(id, api.Stop{Signal: "KILL", Reason: job.ByUser})
	s.exit(id)
	if out := s.output(id); strings.Count(out, "usr2") != 1 || strings.Count(out, "usr1") != 2 {
		t.Errorf("output %q: want usr1 as a signal and at the stop, usr2 once", out)
	}
	s.empty()
	p.term()
}
