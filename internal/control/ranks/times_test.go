package ranks

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestBoundOnClock: whatever a node's clock was set to between a begin and an end, the rank counts within its attempt, and not
// until before it began.
func TestBoundOnClock(t *testing.T) {
	const start, begun, now = 100 * sched.Hour, 101 * sched.Hour, 102 * sched.Hour
	for name, tc := range map[string]struct {
		heard sched.Time // that it runs
		began sched.Time // by the word of its end
		want  sched.Time
	}{
		"not set":               {begun, begun, begun},
		"set ahead":             {begun, begun - 3*sched.Hour, begun},
		"set back":              {begun, begun + 3*sched.Hour, begun},
		"set ahead, told late":  {0, begun - 3*sched.Hour, start},
		"set back, told late":   {0, begun + 3*sched.Hour, now},
		"set back, as it began": {begun, now + sched.Second, begun},
	} {
		t.Run(name, func(t *testing.T) {
			r := state.Rank{Begun: tc.heard, Phase: node.PhaseStarting}
			if tc.heard > 0 {
				r.Phase = node.PhaseRunning
			}
			said := node.RankStatus{Phase: node.PhaseEnded, StartedMS: int64(tc.began), Exit: &node.Exit{StartedMS: int64(tc.began), EndedMS: int64(now)}}
			Word{Now: now}.Bound(&state.Attempt{Start: start}, &r, said)
			if got := Started(now, r); got != tc.want {
				t.Errorf("it began at %d, want %d", got, tc.want)
			}
			if free := sched.Time(r.Exit.FreeMS); free != now {
				t.Errorf("it counts until %d, want %d", free, now)
			}
		})
	}
}

// TestBoundOfWhatRuns: what ended unheard with its node counts until its lease was over, though the node, whose clock was set back
// meanwhile, says that it began later than it was heard to run.
func TestBoundOfWhatRuns(t *testing.T) {
	const start, heard, booted, now = 100 * sched.Hour, 101 * sched.Hour, 102 * sched.Hour, 103 * sched.Hour
	r := state.Rank{Phase: node.PhaseRunning} // heard at once: by the controller's own time
	exit := &node.Exit{Reason: job.NodeFail, StartedMS: int64(now - 8*sched.Minute), EndedMS: int64(now)}
	Word{Now: now, Before: heard, Booted: booted}.Bound(&state.Attempt{Start: start}, &r, node.RankStatus{Phase: node.PhaseEnded, StartedMS: exit.StartedMS, Exit: exit})
	if free := sched.Time(r.Exit.FreeMS); free != booted || r.Begun != 0 {
		t.Errorf("it counts until %d, and from %d; want until %d, from when it was heard", free, r.Begun, booted)
	}
}
