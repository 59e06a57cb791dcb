package given

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

// TestTakenBack: an attempt is none of a job's restarts if it was taken back before it began.
func TestTakenBack(t *testing.T) {
	back := &state.Ending{Signal: "KILL", Ahead: true, Then: job.Queued}
	at := func(e node.Exit) *state.Attempt {
		return &state.Attempt{Ranks: []state.Rank{{Phase: node.PhaseEnded, Exit: &e}}}
	}
	tests := map[string]struct {
		ending *state.Ending
		at     *state.Attempt
		want   uint32
	}{
		"before it began":     {back, at(node.Exit{Code: 137, Reason: job.ByUser}), 1},
		"too late":            {back, at(node.Exit{StartedMS: 5}), 0},
		"cancelled":           {&state.Ending{Signal: "TERM", Then: job.Cancelled}, at(node.Exit{Code: 137, Reason: job.ByUser}), 0},
		"ended by itself":     {nil, at(node.Exit{StartedMS: 5}), 0},
		"its node never said": {nil, at(node.Exit{Reason: job.NodeFail}), 0},
	}
	for name, tc := range tests {
		if got := TakenBack(tc.ending, tc.at); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
