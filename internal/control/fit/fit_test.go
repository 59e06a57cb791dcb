package fit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestFailed: failures of different jobs in a row keep jobs away for a while, which
// doubles; those of one job count once.
func TestFailed(t *testing.T) {
	const now = 1000 * sched.Second
	again := state.Trouble{Jobs: []job.Number{1, 2, 3}, Times: 1}
	for name, tc := range map[string]struct {
		before *state.Trouble
		job    job.Number
		jobs   []job.Number
		span   sched.Time // 0: it gets jobs
	}{
		"first":               {nil, 1, []job.Number{1}, 0},
		"second":              {&state.Trouble{Jobs: []job.Number{1}}, 2, []job.Number{1, 2}, 0},
		"the same job":        {&state.Trouble{Jobs: []job.Number{1, 2}}, 2, []job.Number{1, 2}, 0},
		"third":               {&state.Trouble{Jobs: []job.Number{1, 2}}, 3, []job.Number{1, 2, 3}, sched.Minute},
		"one more":            {&again, 4, []job.Number{2, 3, 4}, 2 * sched.Minute},
		"one more of a known": {&again, 3, []job.Number{1, 2, 3}, 2 * sched.Minute},
		"the longest":         {&state.Trouble{Jobs: []job.Number{1, 2, 3}, Times: 60}, 4, []job.Number{2, 3, 4}, sched.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			got := Failed(tc.before, now, tc.job, "it fell over")
			span := got.Until
			if span > 0 {
				span -= now
			}
			if diff := cmp.Diff(tc.jobs, got.Jobs); diff != "" || span != tc.span || (got.Why != "") != (span > 0) {
				t.Errorf("jobs (-want +got):\n%s\nfor %d ms: %s", diff, span, got.Why)
			}
		})
	}
	during := &state.Trouble{Jobs: []job.Number{1, 2, 3}, Times: 1, Until: now + 5}
	if got := Failed(during, now, 4, ""); got.Until != during.Until || got.Times != 1 {
		t.Errorf("a failure during a penalty made another: %+v", got)
	}
}

// TestSilent: silence makes a node suspect, then lost, each at its time.
func TestSilent(t *testing.T) {
	p := Patience{Suspect: 30, Lost: 120}
	for _, tc := range []struct {
		node          state.Node
		now           sched.Time
		suspect, lost bool
		next          sched.Time
	}{
		{state.Node{LastSeen: 100}, 129, false, false, 130},
		{state.Node{LastSeen: 100}, 130, true, false, 130},
		{state.Node{LastSeen: 100, Suspect: true}, 219, true, false, 220},
		{state.Node{LastSeen: 100, Suspect: true}, 220, true, true, 220},
		{state.Node{LastSeen: 100, Suspect: true, Lost: true}, 90, true, true, 0},
	} {
		suspect, lost := p.Silent(tc.now, &tc.node)
		if suspect != tc.suspect || lost != tc.lost || p.Next(&tc.node) != tc.next {
			t.Errorf("%+v at %d: suspect %t, lost %t, next %d", tc.node, tc.now, suspect, lost, p.Next(&tc.node))
		}
	}
}
