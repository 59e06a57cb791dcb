package slurm

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestRestarts: what was given to a node and taken back before it began is no restart.
func TestRestarts(t *testing.T) {
	at := func(e *node.Exit) api.Attempt { return api.Attempt{Ranks: []api.Rank{{Exit: e}}} }
	ran, back := at(&node.Exit{StartedMS: 1, Reason: job.ByUser}), at(&node.Exit{Code: 137, Reason: job.ByUser})
	lost, broken := at(nil), at(&node.Exit{Code: 125, Reason: job.ImagePull})
	for name, tc := range map[string]struct {
		attempts []api.Attempt
		want     int
	}{
		"none":         {nil, 0},
		"first":        {[]api.Attempt{ran}, 0},
		"taken back":   {[]api.Attempt{back, back, ran}, 0},
		"ran before":   {[]api.Attempt{ran, back, ran}, 1},
		"was lost":     {[]api.Attempt{lost, ran}, 1},
		"had no image": {[]api.Attempt{broken, ran}, 1},
	} {
		if got := restarts(&row{PastJob: api.PastJob{Attempts: tc.attempts}}); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
