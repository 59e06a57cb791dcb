package noded

import (
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// counting prints lines for as long as it is let.
const counting = `trap 'echo told; exit 9' TERM; echo ready; while :; do echo line; sleep 0.05; done`

func (f *fakeController) pause(id job.RankID, paused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.desired[id]
	o.Paused = paused
	f.desired[id] = o
	f.version++
	f.touch()
}

// standsStill waits until a rank's output has not grown for a while.
func (s *site) standsStill(b *streamBody) {
	s.t.Helper()
	last, since := "", time.Now()
	until(s.t, "the rank to stand still", func() bool {
		if text, _ := b.now(); text != last {
			last, since = text, time.Now()
		}
		return time.Since(since) > time.Second
	})
}

func (s *site) goesOn(b *streamBody) {
	s.t.Helper()
	before, _ := b.now()
	until(s.t, "the rank to go on", func() bool {
		text, _ := b.now()
		return len(text) > len(before)
	})
}

// A paused rank stands still, also over a restart of the daemon, until it is
// let go on; one that is to end hears its signal.
func TestPause(t *testing.T) {
	s := newSite(t, nil).start()
	id := rankID(1)
	s.want(id, order(counting))
	s.ready(id)
	b := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	s.goesOn(b)
	s.pause(id, true)
	s.standsStill(b)
	s.halt()
	s.start()
	s.phase(id, node.PhaseRunning)
	b = s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	s.standsStill(b)
	s.pause(id, false)
	s.goesOn(b)
	s.pause(id, true)
	s.standsStill(b)
	s.stop(id, api.Stop{Signal: "TERM", GraceMS: 20_000, Reason: job.ByUser})
	if e := s.exit(id); e.Code != 9 || e.Reason != job.ByUser {
		t.Errorf("a paused rank was stopped: %+v", e)
	}
	if text := s.output(id); !strings.HasSuffix(text, "told\n") {
		t.Errorf("it was not told: %.100q", text)
	}
	s.drop(id)
	s.holdsNothing()
}
