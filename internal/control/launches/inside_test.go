package launches

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestInside: a node speaks for what is in a container only while the container runs
// there, by the attempt that is the job's now.
func TestInside(t *testing.T) {
	made := func(change func(*state.Job)) *state.Job {
		j := &state.Job{Number: 7, State: job.Running, Attempt: &state.Attempt{Attempt: 2, Ranks: []state.Rank{
			{Alloc: sched.Allocation{Node: "a"}, Phase: node.PhaseRunning}, {Alloc: sched.Allocation{Node: "b"}, Phase: node.PhaseRunning}}}}
		if change != nil {
			change(j)
		}
		return j
	}
	second := job.RankID{Job: 7, Attempt: 2, Rank: 1}
	for name, tc := range map[string]struct {
		j    *state.Job
		on   string
		id   job.RankID
		want bool
	}{
		"first":           {made(nil), "a", job.RankID{Job: 7, Attempt: 2}, true},
		"second":          {made(nil), "b", second, true},
		"another node's":  {made(nil), "a", second, false},
		"no such rank":    {made(nil), "b", job.RankID{Job: 7, Attempt: 2, Rank: 2}, false},
		"earlier attempt": {made(nil), "b", job.RankID{Job: 7, Attempt: 1, Rank: 1}, false},
		"another task":    {made(nil), "b", job.RankID{Job: 7, Task: 1, Attempt: 2, Rank: 1}, false},
		"rank has ended":  {made(func(j *state.Job) { j.Attempt.Ranks[1].Phase = node.PhaseEnded }), "b", second, false},
		"job has ended":   {made(func(j *state.Job) { j.State = job.Finished }), "b", second, false},
		"waits again":     {made(func(j *state.Job) { j.State, j.Attempt = job.Queued, nil }), "b", second, false},
		"is gone":         {nil, "b", second, false},
	} {
		if got := Inside(tc.j, tc.on, tc.id) == nil; got != tc.want {
			t.Errorf("%s: allowed %v", name, got)
		}
	}
}
