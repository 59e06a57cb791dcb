package noded

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// listens says when it is told, and goes on.
const listens = `trap 'echo warned' USR1; echo ready; while :; do sleep 0.05; done`

func warning(limitMS int64, before job.Duration) func(*api.RunOrder) {
	return func(o *api.RunOrder) {
		o.LimitMS, o.GraceMS = limitMS, 100
		o.Spec.Gbatch = &job.Gbatch{WarnBefore: before, WarnSignal: "USR1"}
	}
}

// The early warning comes once, before the limit, and not at all to a rank
// without one. The limits leave a loaded machine some seconds to start the
// program, and then to let it answer the warning.
func TestEarlyWarning(t *testing.T) {
	s := newSite(t, nil).start()
	e, out := s.run(rankID(1), order(listens, warning(12_000, 6)))
	if e.Reason != job.MaxRuntime || said(out) != "ready\nwarned\n" {
		t.Errorf("%+v, output %q", e, out)
	}
	if _, out := s.run(rankID(2), order(listens, func(o *api.RunOrder) { o.LimitMS, o.GraceMS = 4000, 100 })); said(out) != "ready\n" {
		t.Errorf("without a warning: output %q", out)
	}
	s.holdsNothing()
}

// said is an output without the shell's word of how its last sleep ended, if one ran then.
func said(out string) string { return strings.TrimSuffix(out, "Terminated\n") }

// A daemon that takes over a rank that was warned does not warn it again.
func TestEarlyWarningOverRestart(t *testing.T) {
	s := newSite(t, nil)
	p := s.spawn(0)
	id := rankID(1)
	s.want(id, order(listens, warning(60_000, 59)))
	b := s.open(api.StreamRequest{Kind: "log", Rank: id, Follow: true})
	until(t, "the warning", func() bool {
		text, _ := b.now()
		return strings.Contains(text, "warned")
	})
	p.kill()
	p = s.spawn(1)
	s.phase(id, node.PhaseRunning)
	s.stop(id, api.Stop{Signal: "KILL", Reason: job.ByUser})
	s.exit(id)
	if out := s.output(id); strings.Count(out, "warned") != 1 {
		t.Errorf("output %q", out)
	}
	s.empty()
	p.term()
}
